//! The OpenAPI document, made true where the types alone do not say it, and its page.

use utoipa::OpenApi;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Schema, SchemaType, Type};
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
fn without_null(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten();
        for parameter in operations.flat_map(|it| it.parameters.iter_mut().flatten()) {
            let RefOr::T(parameter) = parameter else { continue };
            let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema else { continue };
            let SchemaType::Array(kinds) = &mut schema.schema_type else { continue };
            kinds.retain(|it| *it != Type::Null);
            if let [only] = &**kinds {
                schema.schema_type = SchemaType::Type(only.clone());
            }
        }
    }
    document
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
