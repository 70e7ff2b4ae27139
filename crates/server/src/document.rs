//! The OpenAPI document, made true where the types alone do not say it, and its page.

use serde_json::Value;
use utoipa::OpenApi;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa_swagger_ui::{Config, SwaggerUi};

#[derive(OpenApi)]
#[openapi(
    info(title = "Chancery", description = "Runs AI agents under authority that the system enforces."),
    modifiers(&Bearer),
    security(("bearer" = []))
)]
pub struct Document;

/// The page that shows the document; it asks nobody else about it.
pub fn page(document: utoipa::openapi::OpenApi) -> SwaggerUi {
    let config = Config::default().validator_url("none");
    SwaggerUi::new("/docs").url("/openapi.json", without_null(document)).config(config)
}

/// A parameter that is not given is absent: no query and no header can say `null`.
fn without_null(document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let edited = serde_json::to_value(&document).and_then(|mut value| {
        let paths = value["paths"].as_object_mut();
        let operations = paths
            .into_iter()
            .flat_map(|it| it.values_mut())
            .filter_map(Value::as_object_mut)
            .flat_map(|it| it.values_mut());
        for operation in operations {
            let parameters = operation["parameters"].as_array_mut();
            for parameter in parameters.into_iter().flatten() {
                let kind = &mut parameter["schema"]["type"];
                if let Some([only]) = kind.as_array_mut().map(|kinds| {
                    kinds.retain(|it| it != "null");
                    kinds.as_slice()
                }) {
                    *kind = only.clone();
                }
            }
        }
        serde_json::from_value(value)
    });
    edited.unwrap_or(document)
}

struct Bearer;

impl utoipa::Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        document
            .components
            .get_or_insert_default()
            .security_schemes
            .insert("bearer".to_owned(), scheme.into());
    }
}
