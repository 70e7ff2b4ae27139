//! `[models.NAME]`: which models there are, and how they are reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chancery_runtime::model::price::{Price, Priced, Prices};
use chancery_runtime::model::scripted::ScriptedModel;
use chancery_runtime::model::{Model, Models, Patience, Secret, anthropic, openai};
use serde::{Deserialize, Serialize};

use super::{Config, ConfigError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Openai,
    Anthropic,
    Scripted,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    pub provider: Provider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// What the far side calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable that holds the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// For `scripted`: the file with what it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// For a whole answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<u64>,
    /// Tries after the first one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
    /// For a million tokens that it reads, in whatever money the operator thinks in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_price: Option<f64>,
    /// For a million tokens that it writes, in the same money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_price: Option<f64>,
}

impl ModelConfig {
    pub fn new(provider: Provider) -> ModelConfig {
        ModelConfig {
            provider,
            base_url: None,
            model: None,
            api_key_env: None,
            scenario: None,
            max_output_tokens: None,
            temperature: None,
            timeout_seconds: None,
            retries: None,
            input_price: None,
            output_price: None,
        }
    }
}

/// The model that is taken when a tier names none.
const DEFAULT: &str = "default";

/// Builds every configured model. Without any, one is taken from the environment's usual keys,
/// or else the scripted one, which says what it is.
pub fn build_models(
    config: &Config,
    environment: &BTreeMap<String, String>,
) -> Result<Models, ConfigError> {
    let mut built: BTreeMap<String, Arc<dyn Model>> = BTreeMap::new();
    for (name, model) in &config.models {
        built.insert(name.clone(), build_model(name, model, environment)?);
    }
    let default = match built.get(DEFAULT).or_else(|| built.values().next()) {
        Some(model) => model.clone(),
        None => build_model(DEFAULT, &from_environment(environment), environment)?,
    };
    let mut by_tier = BTreeMap::new();
    for tier in ["capable", "balanced", "fast"] {
        let name = config.tiers.get(tier).map_or(tier, String::as_str);
        if let Some(model) = built.get(name) {
            by_tier.insert(tier.to_owned(), model.clone());
        }
    }
    for (tier, name) in &config.tiers {
        if let Some(model) = built.get(name) {
            by_tier.insert(tier.clone(), model.clone());
        }
    }
    Ok(Models::new(default, by_tier))
}

/// Which models there are, in words: what is configured, or what the environment gives.
pub fn describe_models(config: &Config, environment: &BTreeMap<String, String>) -> String {
    if !config.models.is_empty() {
        return config.models.keys().cloned().collect::<Vec<_>>().join(", ");
    }
    let found = from_environment(environment);
    match (found.model, found.api_key_env) {
        (Some(model), Some(key)) => format!("{model}, because `{key}` is set"),
        _ => "the scripted one, because none is configured and no key is set".to_owned(),
    }
}

fn from_environment(environment: &BTreeMap<String, String>) -> ModelConfig {
    let set = |name: &str| environment.get(name).filter(|it| !it.is_empty()).cloned();
    if set("OPENAI_API_KEY").is_some() {
        ModelConfig {
            base_url: set("OPENAI_BASE_URL"),
            model: set("OPENAI_MODEL").or(Some("gpt-4.1".to_owned())),
            api_key_env: Some("OPENAI_API_KEY".to_owned()),
            ..ModelConfig::new(Provider::Openai)
        }
    } else if set("ANTHROPIC_API_KEY").is_some() {
        ModelConfig {
            model: set("ANTHROPIC_MODEL").or(Some("claude-sonnet-4-5".to_owned())),
            api_key_env: Some("ANTHROPIC_API_KEY".to_owned()),
            ..ModelConfig::new(Provider::Anthropic)
        }
    } else {
        ModelConfig::new(Provider::Scripted)
    }
}

/// One of them, by itself.
pub fn build_model(
    name: &str,
    config: &ModelConfig,
    environment: &BTreeMap<String, String>,
) -> Result<Arc<dyn Model>, ConfigError> {
    let wrong = |detail: String| ConfigError::Meaning(format!("model `{name}`: {detail}"));
    let mut patience = Patience::default();
    if let Some(seconds) = config.timeout_seconds {
        patience.whole = Duration::from_secs(seconds);
        patience.first_byte = patience.first_byte.min(patience.whole);
        patience.between = patience.between.min(patience.whole);
    }
    patience.retries = config.retries.unwrap_or(patience.retries);
    let api_key = match &config.api_key_env {
        None => None,
        Some(_) if config.provider == Provider::Scripted => None,
        Some(variable) => match environment.get(variable).filter(|it| !it.is_empty()) {
            Some(key) => Some(Secret::from(key.as_str())),
            None => {
                return Err(wrong(format!("the environment variable `{variable}` is not set")));
            }
        },
    };
    let prices = prices(name, config)?;
    let model = |fallback: &str| config.model.clone().unwrap_or_else(|| fallback.to_owned());
    let built: Arc<dyn Model> = match config.provider {
        Provider::Openai => {
            let base_url = config.base_url.as_deref().unwrap_or("https://api.openai.com/v1");
            let built = openai::OpenAi::new(openai::Config {
                name: name.to_owned(),
                base_url: base_url.to_owned(),
                model: model(name),
                api_key,
                patience,
                max_output_tokens: config.max_output_tokens,
                temperature: config.temperature,
            });
            Arc::new(built.map_err(|it| wrong(it.to_string()))?)
        }
        Provider::Anthropic => {
            let base_url = config.base_url.as_deref().unwrap_or(anthropic::BASE_URL);
            let built = anthropic::Anthropic::new(anthropic::Config {
                name: name.to_owned(),
                base_url: base_url.to_owned(),
                model: model(name),
                api_key,
                patience,
                max_output_tokens: config.max_output_tokens,
                temperature: config.temperature,
            });
            Arc::new(built.map_err(|it| wrong(it.to_string()))?)
        }
        Provider::Scripted => {
            let built = match &config.scenario {
                Some(path) => ScriptedModel::load(path),
                None => ScriptedModel::without_scenario(),
            };
            Arc::new(built.map_err(|it| wrong(it.to_string()))?)
        }
    };
    let free = prices == Prices::default();
    Ok(if free { built } else { Arc::new(Priced { model: built, prices }) })
}

/// What its answers cost. A price that is not set is nothing.
pub(super) fn prices(name: &str, config: &ModelConfig) -> Result<Prices, ConfigError> {
    let price = |key: &str, money: Option<f64>| {
        let money = money.unwrap_or_default();
        Price::new(money).map_err(|it| {
            ConfigError::Meaning(format!("setting `models.{name}.{key}` is {money}: {it}"))
        })
    };
    Ok(Prices {
        input: price("input_price", config.input_price)?,
        output: price("output_price", config.output_price)?,
    })
}
