//! `[telemetry]`: who collects traces. The usual variables of OpenTelemetry stand in for it.

use std::collections::BTreeMap;

use chancery_runtime::courier::OtlpSubscriber;
use serde::{Deserialize, Serialize};

use super::ConfigError;
use super::webhook::secret;

/// What the subscriber is called among those who are told something.
pub(super) const NAME: &str = "otlp";
pub(super) const TOPICS: &[&str] = &["run.completed", "run.failed", "run.cancelled"];

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// An OTLP collector over HTTP, as in `http://localhost:4318`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The environment variable that holds headers for it: `name=value,name=value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers_env: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
}

impl TelemetryConfig {
    pub(super) fn subscriber(
        &self,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<OtlpSubscriber>, ConfigError> {
        let wrong = |detail: String| ConfigError::Meaning(format!("telemetry: {detail}"));
        let set = |name: &str| environment.get(name).filter(|it| !it.is_empty()).cloned();
        let endpoint = self.endpoint.clone().or_else(|| set("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint else { return Ok(None) };
        if !endpoint.starts_with("http://") && !endpoint.starts_with("https://") {
            return Err(wrong("`endpoint` begins with `http://` or `https://`".to_owned()));
        }
        let headers = match &self.headers_env {
            Some(variable) => secret(environment, variable).map_err(wrong)?,
            None => set("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default(),
        };
        let header = |it: &str| {
            let (name, value) = it.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        let headers = headers.split(',').filter(|it| !it.trim().is_empty()).map(|it| {
            header(it).ok_or_else(|| wrong("headers are `name=value,name=value`".to_owned()))
        });
        let headers = headers.collect::<Result<_, _>>()?;
        let named = self.service_name.clone().or_else(|| set("OTEL_SERVICE_NAME"));
        let service_name = named.unwrap_or_else(|| "chancery".to_owned());
        Ok(Some(OtlpSubscriber { endpoint, headers, service_name }))
    }
}
