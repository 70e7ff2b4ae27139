//! The tools of a role for agents outside, and the servers that tools come from.

use reqwest::header::{ACCEPT, CONTENT_TYPE};

use super::{Client, ClientError};
use crate::Page;
use crate::org::McpServer;

impl Client {
    pub async fn mcp_servers(&self) -> Result<Page<McpServer>, ClientError> {
        self.get("/api/mcp/servers").await
    }

    /// A message of the protocol. What the protocol answers is an answer, whatever its status;
    /// what the server itself refuses is a problem.
    pub async fn mcp(
        &self,
        message: String,
        headers: &[(&'static str, String)],
    ) -> Result<reqwest::Response, ClientError> {
        let request = self.http.post(format!("{}/mcp", self.base)).bearer_auth(&self.token);
        let request = request.header(CONTENT_TYPE, "application/json");
        let request = request.header(ACCEPT, "application/json, text/event-stream");
        let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, value));
        let response = request.body(message).send().await.map_err(|it| self.unreachable(&it))?;
        let json = response.headers().get(CONTENT_TYPE).is_some_and(|it| it == "application/json");
        if response.status().is_success() || json {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|it| self.unreachable(&it))?;
        let problem = serde_json::from_slice(&body);
        Err(problem.map_or_else(
            |it| ClientError::Unreadable(it.to_string()),
            |it| ClientError::Problem(Box::new(it)),
        ))
    }
}
