//! The routes of the HTTP interface as a router, and as the document that is made from what stands
//! above their handlers. A server has the one, and makes the other when somebody asks for it: it is
//! larger than all else that an idle server keeps.

use axum::routing::MethodFilter;
use utoipa::openapi::HttpMethod;
use utoipa_axum::PathItemExt;

/// Makes both of one table.
macro_rules! surface {
    ($($module:ident :: $handler:ident $(, $of:ident :: $more:ident)*;)*) => {
        fn surface() -> axum::Router<App> {
            use $crate::surface::method;
            utoipa_axum::paste! {
                axum::Router::new()$(.route(
                    &<$module::[<__path_ $handler>] as utoipa::Path>::path(),
                    axum::routing::on(
                        method::<$module::[<__path_ $handler>]>(),
                        $module::$handler,
                    )$(.on(method::<$of::[<__path_ $more>]>(), $of::$more))*,
                ))*
            }
        }

        /// What the routes say of themselves.
        pub fn described() -> utoipa::openapi::OpenApi {
            use utoipa::OpenApi;
            utoipa_axum::router::OpenApiRouter::<App>::with_openapi(document::Document::openapi())
                $(.routes(utoipa_axum::routes!($module::$handler $(, $of::$more)*)))*
                .into_openapi()
        }
    };
}
pub(crate) use surface;

/// What a handler answers to, by what stands above it.
pub fn method<P: utoipa::Path>() -> MethodFilter {
    let methods = P::methods().iter().map(HttpMethod::to_method_filter).reduce(MethodFilter::or);
    methods.unwrap_or(MethodFilter::GET)
}
