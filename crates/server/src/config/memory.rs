//! `[memory]`: how long what is remembered is kept.

use chancery_domain::memory::MemoryKind;
use chancery_runtime::deposit::Retention;
use chancery_runtime::tool::config::Span;
use serde::{Deserialize, Serialize};

use crate::routes::runs::ORG;

/// Each for ever, unless set: `30d`, `365d`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MemoryConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_core: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_episodic: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_archival: Option<Span>,
}

impl MemoryConfig {
    pub fn retention(&self) -> Retention {
        let ages = [
            (MemoryKind::Core, self.keep_core),
            (MemoryKind::Episodic, self.keep_episodic),
            (MemoryKind::Archival, self.keep_archival),
        ];
        let ages = ages.into_iter().filter_map(|(kind, age)| Some((kind, age?.0))).collect();
        Retention { org: ORG.to_owned(), ages }
    }
}
