//! The OpenAPI document, made true where the types alone do not say it, and its page.

use std::sync::OnceLock;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::OpenApi;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{ContentBuilder, Ref, RefOr, ResponseBuilder};
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::error::ApiError;
use crate::router::{self, App};

#[derive(OpenApi)]
#[openapi(
    info(title = "Chancery", description = "Runs AI agents under authority that the system enforces."),
    modifiers(&Bearer),
    security(("bearer" = []))
)]
pub struct Document;

const PLACE: &str = "/openapi.json";

/// The document, and the page that shows it, which asks nobody else about it.
pub fn page() -> Router<App> {
    let config = Config::new([PLACE]).validator_url("none");
    Router::from(SwaggerUi::new("/docs").config(config)).route(PLACE, get(document))
}

async fn document() -> Result<impl IntoResponse, ApiError> {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let text = match TEXT.get() {
        Some(text) => text.clone(),
        None => {
            let made = named(described(limited(without_null(router::described()))));
            let made =
                serde_json::to_vec(&made).map_err(|it| ApiError::Internal(it.to_string()))?;
            TEXT.get_or_init(|| made.into()).clone()
        }
    };
    Ok(([(CONTENT_TYPE, "application/json")], text))
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

/// Whoever shows a token can be told to wait.
fn limited(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let problem = Ref::from_schema_name("Problem");
    let content = ContentBuilder::new().schema(Some(problem)).build();
    let seconds = HeaderBuilder::new()
        .schema(Some(ObjectBuilder::new().schema_type(Type::Integer)))
        .description(Some("Seconds until there is room again"));
    let response = ResponseBuilder::new()
        .description("Too many requests: wait for as long as `Retry-After` says")
        .content("application/problem+json", content)
        .header("Retry-After", seconds.build())
        .build();
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten();
        // Those that need no token say so, and are never told to.
        for operation in operations.filter(|it| it.security.is_none()) {
            let responses = &mut operation.responses.responses;
            responses.insert("429".to_owned(), RefOr::T(response.clone()));
        }
    }
    document
}

/// Operations go by what they are about and what they do, `runs_list`: a name of its own for each,
/// under which programs that make clients put it.
fn named(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    for (path, item) in &mut document.paths.paths {
        let about = path.strip_prefix("/api/").and_then(|it| it.split('/').next());
        let about = about.unwrap_or("machine").to_owned();
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten();
        for operation in operations {
            let does = operation.operation_id.take().unwrap_or_default();
            operation.operation_id = Some(format!("{about}_{does}"));
            operation.tags = Some(vec![about.clone()]);
        }
    }
    document
}

/// Every answer has a description, if only what its number means: programs that make clients
/// insist on it.
fn described(mut document: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    for item in document.paths.paths.values_mut() {
        let operations =
            [&mut item.get, &mut item.put, &mut item.post, &mut item.delete].into_iter().flatten();
        for (status, response) in operations.flat_map(|it| it.responses.responses.iter_mut()) {
            let RefOr::T(response) = response else { continue };
            if response.description.is_empty() {
                let known = status.parse().ok().and_then(|it: StatusCode| it.canonical_reason());
                response.description = known.unwrap_or("Otherwise").to_owned();
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
