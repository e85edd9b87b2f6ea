//! Feature gates: which names are known, and which features this server has.
//!
//! kcp knows its own gates and those of the Kubernetes API server that it is built on; scripts pass
//! both. A gate is on or off here for good: asking for the other gives one warning line.

use crate::flags::Error;

const FLAG: &str = "feature-gates";

/// kcp's gates (`pkg/features`) and those of `k8s.io/apiserver` whose feature is here.
const ON: &[&str] = &[
    "APIResponseCompression",
    "ConsistentListFromCache",
    "ContextualLogging",
    "GlobalServiceAccount",
    "ListFromCacheSnapshot",
    "LoggingBetaOptions",
    "OpenAPIEnums",
    "RetryGenerateName",
    "StorageVersionHash",
    "StreamingCollectionEncodingToJSON",
    "StreamingCollectionEncodingToProtobuf",
    "WatchList",
];

/// kcp's gates whose feature is not here yet.
const OFF: &[&str] = &[
    "AllAlpha",
    "AllBeta",
    "CacheAPIs",
    "EnableDeprecatedAPIExportVirtualWorkspacesUrls",
    "LogicalClusterMigration",
    "StorageVersionAPI",
    "WorkspaceAuthentication",
    "WorkspaceMounts",
];

/// Gates of `k8s.io/apiserver` about features or workings that this server does not have, and the one
/// of the kubelet's world that kcp turns off by name.
const OFF_KUBERNETES: &[&str] = &[
    "APIServerIdentity",
    "APIServerTracing",
    "APIServingWithRoutine",
    "AggregatedDiscoveryRemoveBetaType",
    "AllowParsingUserUIDFromCertAuth",
    "AllowUnsafeMalformedObjectDeletion",
    "AnonymousAuthConfigurableEndpoints",
    "AuthorizeWithSelectors",
    "BtreeWatchCache",
    "CBORServingAndStorage",
    "ConcurrentWatchObjectDecode",
    "ConstrainedImpersonation",
    "CoordinatedLeaderElection",
    "DRAExtendedResource",
    "DeclarativeValidation",
    "DeclarativeValidationBeta",
    "DeclarativeValidationTakeover",
    "DetectCacheInconsistency",
    "KMSv1",
    "ManifestBasedAdmissionControlConfig",
    "MutatingAdmissionPolicy",
    "RemoteRequestHeaderUID",
    "ResilientWatchCacheInitialization",
    "SeparateCacheWatchRPC",
    "ShardedListAndWatch",
    "SizeBasedListCostEstimate",
    "StructuredAuthenticationConfiguration",
    "StructuredAuthenticationConfigurationEgressSelector",
    "StructuredAuthenticationConfigurationJWKSMetrics",
    "TokenRequestServiceAccountUIDValidation",
    "UnauthenticatedHTTP2DOSMitigation",
    "UnknownVersionInteroperabilityProxy",
    "WatchCacheInitializationPostStartHook",
];

/// Checks `Name=true|false` pairs; the warnings name gates that stay as they are.
pub fn check(given: &[String]) -> Result<Vec<String>, Error> {
    let mut warnings = Vec::new();
    for pair in given {
        let malformed = || Error::value(FLAG, pair.clone(), "is not Name=true or Name=false");
        let (name, value) = pair.split_once('=').ok_or_else(malformed)?;
        let wanted: bool = value.to_ascii_lowercase().parse().map_err(|_| malformed())?;
        let on = ON.contains(&name);
        if !on && !OFF.contains(&name) && !OFF_KUBERNETES.contains(&name) {
            let why = format!("unrecognized feature gate: {name}");
            return Err(Error::value(FLAG, pair.clone(), why));
        }
        if wanted != on {
            let state = if on { "cannot be turned off" } else { "is not built yet and stays off" };
            warnings.push(format!("feature gate {name} {state}"));
        }
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(pair: &str, want: &str) {
        let got = match check(&[pair.to_owned()]) {
            Ok(warnings) => warnings.join("; "),
            Err(error) => error.to_string(),
        };
        assert_eq!(got, want, "{pair}");
    }

    #[test]
    fn gates() {
        check_one("WatchList=true", "");
        check_one("CacheAPIs=true", "feature gate CacheAPIs is not built yet and stays off");
        check_one("WatchList=False", "feature gate WatchList cannot be turned off");
        check_one("Nope=true", "--feature-gates=Nope=true: unrecognized feature gate: Nope");
        check_one("WatchList", "--feature-gates=WatchList: is not Name=true or Name=false");
        check_one("WatchList=1", "--feature-gates=WatchList=1: is not Name=true or Name=false");
    }

    /// kcp's test framework writes these four out whenever it starts a server.
    #[test]
    fn gates_that_kcp_turns_off() {
        for name in [
            "DRAExtendedResource",
            "SizeBasedListCostEstimate",
            "UnknownVersionInteroperabilityProxy",
            "WatchCacheInitializationPostStartHook",
        ] {
            check_one(&format!("{name}=false"), "");
        }
    }
}
