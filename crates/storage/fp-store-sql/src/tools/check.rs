//! What must hold for the rows of kine's table, decided row by row.

use std::fmt;

use crate::record::{COMPACT_KEY, is_key};

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The row's id; `None` when it is about the whole.
    pub id: Option<i64>,
    pub key: String,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id {
            Some(id) => write!(f, "row {id} ({}): {}", self.key, self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// A row as the table has it, without its values. Empty columns are zero.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogLine {
    pub(crate) id: i64,
    pub(crate) name: Option<String>,
    pub(crate) created: i64,
    pub(crate) deleted: i64,
    pub(crate) create_revision: i64,
    pub(crate) previous: i64,
    pub(crate) lease: i64,
}

/// Takes rows in the order of their names, then ids.
pub(crate) struct Checker {
    head: i64,
    compacted: i64,
    before: LogLine,
    n_compact_rows: u64,
    pub(crate) n_rows: u64,
    pub(crate) n_live: u64,
    pub(crate) faults: Vec<Fault>,
}

impl Checker {
    pub(crate) fn new(head: i64, compacted: i64) -> Self {
        let before = LogLine::default();
        let (n_rows, n_live, n_compact_rows) = (0, 0, 0);
        Self { head, compacted, before, n_compact_rows, n_rows, n_live, faults: Vec::new() }
    }

    pub(crate) fn row(&mut self, row: LogLine) {
        self.n_rows += 1;
        let same = row.name.is_some() && row.name == self.before.name;
        if !same {
            self.count_live();
        }
        let before = same.then_some(&self.before);
        let key = row.name.clone().unwrap_or_default();
        let mut whats = Vec::new();
        if row.id < 1 || row.id > self.head {
            whats.push(format!("its id is beyond the head {}", self.head));
        }
        if row.name.is_none() {
            whats.push("it has no name".to_owned());
        } else if key == COMPACT_KEY {
            self.n_compact_rows += 1;
        } else if is_key(&key) {
            let (compacted, head) = (self.compacted, self.head);
            flags(&row, &mut whats);
            chain(&row, before, compacted, &mut whats);
            life(&row, before, head, &mut whats);
        }
        let id = Some(row.id);
        self.faults.extend(whats.into_iter().map(|what| Fault { id, key: key.clone(), what }));
        self.before = row;
    }

    /// After the last row.
    pub(crate) fn end(&mut self) {
        self.count_live();
        let mut fault = |what| self.faults.push(Fault { id: None, key: String::new(), what });
        if self.n_compact_rows != 1 {
            fault(format!("there are {} compact rows instead of one", self.n_compact_rows));
        }
        if self.compacted > self.head {
            let (compacted, head) = (self.compacted, self.head);
            fault(format!("the compact revision {compacted} is beyond the head {head}"));
        }
    }

    fn count_live(&mut self) {
        let newest = &self.before;
        let live = newest.deleted == 0 && newest.name.as_deref().is_some_and(is_key);
        self.n_live += u64::from(live);
    }
}

fn flags(row: &LogLine, whats: &mut Vec<String>) {
    let LogLine { created, deleted, lease, .. } = row;
    if !matches!((created, deleted), (0, 0) | (0, 1) | (1, 0)) {
        whats.push(format!("created is {created} and deleted is {deleted}"));
    }
    if *lease < 0 {
        whats.push(format!("its lease is {lease}"));
    }
}

/// `prev_revision` is the id of the row before, unless that is compacted.
fn chain(row: &LogLine, before: Option<&LogLine>, compacted: i64, whats: &mut Vec<String>) {
    let previous = row.previous;
    match before {
        _ if previous < 0 || previous >= row.id => {
            whats.push(format!("its prev_revision {previous} is not before it"));
        }
        Some(before) if previous != before.id => {
            whats.push(format!(
                "its prev_revision is {previous}, the row before it is {}",
                before.id
            ));
        }
        None if previous > compacted => {
            let what = "is missing, and the compact revision is";
            whats.push(format!("the row before it, {previous}, {what} {compacted}"));
        }
        _ => {}
    }
}

/// Creates, updates and deletes follow one another as they can.
fn life(row: &LogLine, before: Option<&LogLine>, head: i64, whats: &mut Vec<String>) {
    let lives = before.map(|before| before.deleted == 0);
    match (row.created != 0, lives, before) {
        (true, Some(true), Some(before)) => {
            whats.push(format!("it creates the key, which lives since row {}", before.id));
        }
        (false, Some(false), Some(before)) => {
            whats.push(format!("it changes the key, which row {} has deleted", before.id));
        }
        _ => {}
    }
    let updates = row.created == 0 && row.deleted == 0;
    if updates && (row.create_revision < 1 || row.create_revision >= row.id.min(head + 1)) {
        whats.push(format!("its create_revision is {}", row.create_revision));
    }
    if let Some(before) = before.filter(|before| updates && before.deleted == 0) {
        let since = if before.created != 0 { before.id } else { before.create_revision };
        if since != row.create_revision {
            let found = row.create_revision;
            whats.push(format!("its create_revision is {found}, the row before it says {since}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Rows of one line each: id name created deleted create_revision prev_revision.
    fn check(head: i64, compacted: i64, rows: &str, want: Expect) {
        let mut checker = Checker::new(head, compacted);
        checker.row(LogLine { id: 1, name: Some(COMPACT_KEY.into()), ..LogLine::default() });
        for line in rows.lines() {
            let fields: Vec<_> = line.split(' ').collect();
            let number = |i: usize| fields[i].parse().expect("a number");
            checker.row(LogLine {
                id: number(0),
                name: Some(fields[1].to_owned()),
                created: number(2),
                deleted: number(3),
                create_revision: number(4),
                previous: number(5),
                lease: 0,
            });
        }
        checker.end();
        let faults: String = checker.faults.iter().map(|fault| format!("{fault}\n")).collect();
        want.assert_eq(&format!("{faults}{} live", checker.n_live));
    }

    #[test]
    fn rows_that_are_right() {
        let rows = "2 a 1 0 0 0\n3 a 0 0 2 2\n4 a 0 1 0 3\n5 a 1 0 0 4\n7 b 0 0 2 4\n8 c 0 1 2 3\n9 gap-9 0 1 0 0";
        check(9, 4, rows, expect!["2 live"]);
    }

    #[test]
    fn rows_that_are_not() {
        check(
            5,
            6,
            "9 a 1 0 0 0\n10 a 1 1 0 10",
            expect![[r#"
                row 9 (a): its id is beyond the head 5
                row 10 (a): its id is beyond the head 5
                row 10 (a): created is 1 and deleted is 1
                row 10 (a): its prev_revision 10 is not before it
                row 10 (a): it creates the key, which lives since row 9
                the compact revision 6 is beyond the head 5
                0 live"#]],
        );
        check(
            20,
            1,
            "2 a 1 0 0 0\n3 a 0 0 1 0\n4 a 0 1 2 3\n5 a 0 0 2 4\n6 b 0 0 0 4",
            expect![[r#"
                row 3 (a): its prev_revision is 0, the row before it is 2
                row 3 (a): its create_revision is 1, the row before it says 2
                row 5 (a): it changes the key, which row 4 has deleted
                row 6 (b): the row before it, 4, is missing, and the compact revision is 1
                row 6 (b): its create_revision is 0
                2 live"#]],
        );
        let mut none = Checker::new(1, 0);
        none.row(LogLine { id: 1, ..LogLine::default() });
        none.end();
        let faults: Vec<_> = none.faults.iter().map(Fault::to_string).collect();
        expect![[r#"
            row 1 (): it has no name
            there are 0 compact rows instead of one"#]]
        .assert_eq(&faults.join("\n"));
    }
}
