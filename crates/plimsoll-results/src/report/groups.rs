//! Which rows belong together: by series for colour and mark, by reference for what may be compared.
//! Never draws. Invariant: every row has a series and a reference, also one that names an unknown reference.

use super::Report;

/// The series and references of a report, in the order in which they first appear.
pub(crate) struct Groups<'a> {
    pub(crate) series: Vec<&'a str>,
    pub(crate) references: Vec<&'a str>,
    members: Vec<Member>,
}

/// Where a row belongs: numbers of a series and of a reference.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) series: usize,
    pub(crate) reference: usize,
}

impl<'a> Groups<'a> {
    pub(crate) fn of(report: &'a Report) -> Self {
        let mut series: Vec<&str> = Vec::new();
        let mut references: Vec<&str> = report.references.iter().map(|reference| reference.name.as_str()).collect();
        let members = report
            .rows
            .iter()
            .map(|row| Member {
                series: number_of(&mut series, &row.series),
                reference: number_of(&mut references, &row.reference),
            })
            .collect();
        Self { series, references, members }
    }

    pub(crate) fn member(&self, row: usize) -> Member {
        self.members[row]
    }

    /// The rows of one reference.
    pub(crate) fn rows_of(&self, reference: usize) -> impl Iterator<Item = usize> {
        (0..self.members.len()).filter(move |&row| self.members[row].reference == reference)
    }
}

fn number_of<'a>(names: &mut Vec<&'a str>, name: &'a str) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::super::{ReferenceImage, ReportRow};
    use super::*;

    #[test]
    fn rows_are_numbered_by_first_appearance() {
        let row = |reference: &str, series: &str| ReportRow {
            reference: reference.to_owned(),
            series: series.to_owned(),
            ..ReportRow::default()
        };
        let report = Report {
            references: vec![ReferenceImage { name: "b.png".to_owned(), ..ReferenceImage::default() }],
            rows: vec![row("a.png", "webp"), row("b.png", "jpeg"), row("a.png", "jpeg")],
            ..Report::default()
        };
        let groups = Groups::of(&report);
        assert_eq!((&groups.series[..], &groups.references[..]), (&["webp", "jpeg"][..], &["b.png", "a.png"][..]));
        assert_eq!(groups.member(2), Member { series: 1, reference: 1 });
        assert_eq!(groups.rows_of(1).collect::<Vec<_>>(), [0, 2]);
    }
}
