//! `[memory]`: how long what is remembered is kept, and who can tell what it means.

use std::collections::BTreeMap;
use std::sync::Arc;

use chancery_domain::memory::MemoryKind;
use chancery_runtime::deposit::Retention;
use chancery_runtime::embedding::{self, Embeddings};
use chancery_runtime::model::Secret;
use chancery_runtime::tool::config::Span;
use serde::{Deserialize, Serialize};

use super::ConfigError;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingsConfig>,
}

/// `[memory.embeddings]`: an endpoint that speaks `/v1/embeddings`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmbeddingsConfig {
    /// Up to `/embeddings`.
    pub base_url: String,
    /// What the far side calls it.
    pub model: String,
    /// The environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// For models that can be asked for fewer than they have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
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

    /// Who can tell what texts mean; nobody, unless configured.
    pub fn embeddings(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Arc<Embeddings>>, ConfigError> {
        let Some(config) = &self.embeddings else { return Ok(None) };
        let wrong = |detail: String| ConfigError::Meaning(format!("memory.embeddings: {detail}"));
        let api_key = match &config.api_key_env {
            None => None,
            Some(variable) => {
                let key = environment.get(variable).filter(|it| !it.is_empty());
                let unset = || wrong(format!("the environment variable `{variable}` is not set"));
                Some(Secret::from(key.ok_or_else(unset)?.as_str()))
            }
        };
        let built = Embeddings::new(embedding::Config {
            base_url: config.base_url.clone(),
            model: config.model.clone(),
            api_key,
            dimensions: config.dimensions,
        });
        Ok(Some(Arc::new(built.map_err(|it| wrong(it.to_string()))?)))
    }
}
