//! A service for Restate: the work that is measured, and the work that is killed. It keeps nothing;
//! `restate-server` does.

use peers::{MODEL, argument, effect, monotonic_ns, tool};
use restate_sdk::prelude::*;
use serde_json::{Value, json};

struct Agent {
    far_side: Option<String>,
}

#[restate_sdk::service]
impl Agent {
    #[handler]
    async fn run(&self, ctx: Context<'_>, calls: u32) -> Result<u32, HandlerError> {
        for _ in 0..calls {
            let _: String = ctx.run(|| async { Ok(MODEL.to_owned()) }).name("model").await?;
            let _: String = ctx.run(|| async { Ok(tool()) }).name("tool").await?;
        }
        Ok(calls)
    }

    #[handler]
    async fn effects(&self, ctx: Context<'_>, name: String) -> Result<u32, HandlerError> {
        for n in 0..10 {
            let (file, name) = (self.far_side.clone().unwrap_or_default(), name.clone());
            let call = || async move {
                effect(&file, &name, n).await.map_err(HandlerError::from)?;
                Ok(tool())
            };
            let _: String = ctx.run(call).name("tool").await?;
        }
        Ok(10)
    }
}

struct Approval;

#[restate_sdk::workflow]
impl Approval {
    #[handler]
    async fn run(&self, ctx: WorkflowContext<'_>) -> Result<Json<Value>, HandlerError> {
        let _: String = ctx.run(|| async { Ok(MODEL.to_owned()) }).name("model").await?;
        let _: String = ctx.promise("approve").await?;
        let next: u64 = ctx.run(|| async { Ok(monotonic_ns()) }).name("next").await?;
        Ok(Json(json!({ "next": next })))
    }

    #[handler]
    async fn signal(
        &self,
        ctx: SharedWorkflowContext<'_>,
        _word: Json<Value>,
    ) -> Result<(), HandlerError> {
        ctx.resolve_promise::<String>("approve", "yes".into());
        Ok(())
    }
}

#[tokio::main]
async fn main() {
    let port = argument("--port").unwrap_or_else(|| "19480".to_owned());
    let agent = Agent { far_side: argument("--effects") };
    let endpoint = Endpoint::builder().bind(agent).bind(Approval).build();
    let address = format!("127.0.0.1:{port}").parse().expect("a port");
    HttpServer::new(endpoint).listen_and_serve(address).await;
}
