//! Times as Kubernetes writes them: `metav1.Time` (seconds), `metav1.MicroTime` (six digits), ages in tables.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime, UtcOffset};

/// `2006-01-02T15:04:05Z` of this moment.
pub fn now() -> String {
    format(OffsetDateTime::now_utc())
}

/// `2006-01-02T15:04:05.000000Z` of this moment.
pub fn now_micro() -> String {
    format_micro(OffsetDateTime::now_utc())
}

/// `metav1.Time`: UTC, cut to the second.
pub fn format(at: OffsetDateTime) -> String {
    let at = at.to_offset(UtcOffset::UTC);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        at.year(),
        u8::from(at.month()),
        at.day(),
        at.hour(),
        at.minute(),
        at.second()
    )
}

/// `metav1.MicroTime`: UTC, always six digits of the second.
pub fn format_micro(at: OffsetDateTime) -> String {
    let mut text = format(at);
    text.pop();
    text.push_str(&format!(".{:06}Z", at.microsecond()));
    text
}

/// Reads RFC 3339 as Go does: any offset and any fraction, but only capital `T` and `Z`.
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    let letters_ok = text.as_bytes().get(10) == Some(&b'T') && !text.ends_with('z');
    letters_ok.then(|| OffsetDateTime::parse(text, &Rfc3339).ok()).flatten()
}

/// `duration.HumanDuration`: an age with two or three significant digits: `5s`, `2m3s`, `3h`, `5d`, `2y5d`.
pub fn human_duration(age: Duration) -> String {
    let seconds = age.whole_seconds();
    // A second of clock skew still counts as now.
    match seconds {
        ..-1 => return "<invalid>".into(),
        -1 => return "0s".into(),
        0..120 => return format!("{seconds}s"),
        _ => {}
    }
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |big: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        _ => format!("{big}{unit}{small}{small_unit}"),
    };
    match hours {
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        0..8 => pair(hours, "h", minutes % 60, "m"),
        8..48 => format!("{hours}h"),
        48..192 => pair(days, "d", hours % 24, "h"),
        _ if years < 2 => format!("{days}d"),
        _ if years < 8 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_times() {
        for (text, want) in [
            ("2026-01-02T03:04:05Z", Some(("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000000Z"))),
            (
                "2026-01-02T03:04:05.1234567+01:30",
                Some(("2026-01-02T01:34:05Z", "2026-01-02T01:34:05.123456Z")),
            ),
            ("0001-01-01T00:00:00Z", Some(("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"))),
            ("2026-01-02t03:04:05z", None),
            ("2026-01-02 03:04:05Z", None),
            ("2026-13-02T03:04:05Z", None),
            ("2026-01-02T03:04:05", None),
            ("", None),
        ] {
            let got = parse(text).map(|at| (format(at), format_micro(at)));
            assert_eq!(got.as_ref().map(|(a, b)| (a.as_str(), b.as_str())), want, "{text}");
        }
        assert_eq!((now().len(), now_micro().len()), (20, 27));
    }

    #[test]
    fn ages_are_kubectls() {
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        for (seconds, want) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (123, "2m3s"),
            (599, "9m59s"),
            (600, "10m"),
            (179 * 60, "179m"),
            (3 * HOUR, "3h"),
            (3 * HOUR + 60, "3h1m"),
            (8 * HOUR, "8h"),
            (47 * HOUR, "47h"),
            (48 * HOUR, "2d"),
            (49 * HOUR, "2d1h"),
            (8 * DAY, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (735 * DAY, "2y5d"),
            (8 * 365 * DAY, "8y"),
        ] {
            assert_eq!(human_duration(Duration::seconds(seconds)), want, "{seconds}");
        }
    }
}
