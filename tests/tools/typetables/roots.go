package main

import (
	"reflect"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	certificates "k8s.io/api/certificates/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	events "k8s.io/api/events/v1"
	rbac "k8s.io/api/rbac/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsv1beta1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// packages maps a Go package to the Rust module of its messages and the prefix of their names.
var packages = map[string]struct{ module, prefix string }{
	"k8s.io/api/core/v1":                   {"core", "io.k8s.api.core.v1."},
	"k8s.io/api/rbac/v1":                   {"rbac", "io.k8s.api.rbac.v1."},
	"k8s.io/api/events/v1":                 {"events", "io.k8s.api.events.v1."},
	"k8s.io/api/coordination/v1":           {"coordination", "io.k8s.api.coordination.v1."},
	"k8s.io/api/certificates/v1":           {"certificates", "io.k8s.api.certificates.v1."},
	"k8s.io/api/authentication/v1":         {"authentication", "io.k8s.api.authentication.v1."},
	"k8s.io/api/authorization/v1":          {"authorization", "io.k8s.api.authorization.v1."},
	"k8s.io/api/autoscaling/v1":            {"autoscaling", "io.k8s.api.autoscaling.v1."},
	"k8s.io/api/admissionregistration/v1":  {"admissionregistration", "io.k8s.api.admissionregistration.v1."},
	"k8s.io/apimachinery/pkg/apis/meta/v1": {"meta", "io.k8s.apimachinery.pkg.apis.meta.v1."},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": {
		"apiextensions", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1": {
		"apiextensions_v1beta1", "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1beta1."},
}

// roots are the kinds that the server reads or writes; what they refer to follows.
var roots = []any{
	meta.Status{}, meta.PartialObjectMetadata{}, meta.PartialObjectMetadataList{},
	meta.DeleteOptions{}, meta.CreateOptions{}, meta.UpdateOptions{}, meta.PatchOptions{},
	meta.ListOptions{}, meta.GetOptions{}, meta.APIGroup{}, meta.APIGroupList{},
	meta.APIResourceList{}, meta.APIVersions{}, meta.WatchEvent{}, meta.List{},
	core.ConfigMapList{}, core.EventList{}, core.NamespaceList{}, core.ResourceQuotaList{},
	core.SecretList{}, core.ServiceAccountList{},
	rbac.ClusterRoleList{}, rbac.ClusterRoleBindingList{}, rbac.RoleList{}, rbac.RoleBindingList{},
	events.EventList{}, coordination.LeaseList{}, certificates.CertificateSigningRequestList{},
	authentication.TokenReview{}, authentication.SelfSubjectReview{}, authentication.TokenRequest{},
	authorization.SubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
	authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectRulesReview{},
	autoscaling.Scale{},
	admissionregistration.ValidatingWebhookConfigurationList{},
	admissionregistration.MutatingWebhookConfigurationList{},
	admissionregistration.ValidatingAdmissionPolicyList{},
	admissionregistration.ValidatingAdmissionPolicyBindingList{},
	admissionregistration.MutatingAdmissionPolicyList{},
	admissionregistration.MutatingAdmissionPolicyBindingList{},
	apiextensions.CustomResourceDefinitionList{},
	apiextensionsv1beta1.CustomResourceDefinitionList{},
}

// special are the types that the engine writes by its own rules.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "Duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "FieldsV1",
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "Quantity",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "RawExtension",
}

// unions are the JSON schema types that JSON writes as one of two forms.
var unions = map[string]string{
	"JSON":                         "Json",
	"JSONSchemaPropsOrBool":        "SchemaOrBool",
	"JSONSchemaPropsOrArray":       "SchemaOrList",
	"JSONSchemaPropsOrStringArray": "SchemaOrStrings",
}

func typeName(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }
