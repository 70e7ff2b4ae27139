//! Migrations: numbered, named, checksummed, the same numbers and names for both databases.

use sha2::{Digest, Sha256};

use crate::OpenError;

pub(crate) struct Migration {
    pub number: i64,
    pub name: &'static str,
    pub sqlite: &'static str,
    pub postgres: &'static str,
}

macro_rules! migrations {
    ($($number:literal $name:literal;)*) => {
        pub(crate) const ALL: &[Migration] = &[$(Migration {
            number: $number,
            name: $name,
            sqlite: include_str!(concat!("../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../migrations/postgres/", $name, ".sql")),
        },)*];
    };
}

migrations! {
    1 "0001_init";
    2 "0002_outbox";
    3 "0003_audit";
    4 "0004_permissions";
    5 "0005_suspects";
    6 "0006_org";
    7 "0007_deliveries";
    8 "0008_orphans";
    9 "0009_memory";
    10 "0010_rates";
    11 "0011_mail";
    12 "0012_vectors";
    13 "0013_visits";
    14 "0014_vouched";
    15 "0015_cost";
    16 "0016_by_person";
}

/// The table that says what has been applied; the same text for both databases.
pub(crate) const TABLE: &str = "CREATE TABLE IF NOT EXISTS migrations (
  number BIGINT PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL)";

pub(crate) fn checksum(sql: &str) -> String {
    Sha256::digest(sql.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is still to be applied, given what has been: `(number, checksum)` in order.
pub(crate) fn pending(
    applied: &[(i64, String)],
    text: impl Fn(&Migration) -> &'static str,
) -> Result<Vec<&'static Migration>, OpenError> {
    if let Some((number, _)) = applied.iter().find(|(n, _)| !ALL.iter().any(|it| it.number == *n)) {
        return Err(OpenError::Newer(*number));
    }
    let mut pending = Vec::new();
    for migration in ALL {
        match applied.iter().find(|(number, _)| *number == migration.number) {
            None => pending.push(migration),
            Some((_, known)) if *known == checksum(text(migration)) => {}
            Some(_) => {
                return Err(OpenError::Checksum {
                    number: migration.number,
                    name: migration.name.to_owned(),
                });
            }
        }
    }
    Ok(pending)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_databases_have_the_same_migrations_by_number_and_name() {
        let names = |folder: &str| {
            let package = std::env::var("CARGO_MANIFEST_DIR").unwrap();
            let dir = format!("{package}/migrations/{folder}");
            let mut names: Vec<String> = std::fs::read_dir(dir)
                .unwrap()
                .map(|it| it.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        let listed: Vec<String> = ALL.iter().map(|it| format!("{}.sql", it.name)).collect();
        assert_eq!(names("sqlite"), listed);
        assert_eq!(names("postgres"), listed);
        for migration in ALL {
            assert!(migration.name.starts_with(&format!("{:04}_", migration.number)));
        }
    }

    #[test]
    fn a_changed_or_unknown_migration_is_refused() {
        let known = checksum(ALL[0].sqlite);
        assert!(pending(&[(1, known)], |it| it.sqlite).unwrap().len() == ALL.len() - 1);
        let changed = pending(&[(1, "other".to_owned())], |it| it.sqlite);
        assert!(matches!(changed, Err(OpenError::Checksum { number: 1, .. })));
        let newer = pending(&[(999, "x".to_owned())], |it| it.sqlite);
        assert!(matches!(newer, Err(OpenError::Newer(999))));
    }
}
