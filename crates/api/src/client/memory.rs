//! What is remembered.

use super::{Client, ClientError, segment};
use crate::Page;
use crate::memory::{FoundMemory, Memory, NewMemory};

impl Client {
    pub async fn remember(&self, memory: &NewMemory) -> Result<Memory, ClientError> {
        self.post("/api/memories", memory).await
    }

    pub async fn memories(&self, query: &[(&str, String)]) -> Result<Page<Memory>, ClientError> {
        self.list("/api/memories", query).await
    }

    pub async fn search_memories(
        &self,
        query: &[(&str, String)],
    ) -> Result<Page<FoundMemory>, ClientError> {
        self.list("/api/memories/search", query).await
    }

    pub async fn memory(&self, id: &str, user: Option<&str>) -> Result<Memory, ClientError> {
        self.send(self.http.get(self.of_memory(id)).query(&of(user))).await
    }

    pub async fn forget(&self, id: &str, user: Option<&str>) -> Result<Memory, ClientError> {
        self.send(self.http.delete(self.of_memory(id)).query(&of(user))).await
    }

    /// The lines of an export as they are sent.
    pub async fn export_memories(
        &self,
        query: &[(&str, String)],
    ) -> Result<reqwest::Response, ClientError> {
        let url = format!("{}/api/memories/export", self.base);
        self.answer(self.http.get(url).query(query)).await
    }

    fn of_memory(&self, id: &str) -> String {
        format!("{}/api/memories/{}", self.base, segment(id))
    }
}

fn of(user: Option<&str>) -> Vec<(&str, &str)> {
    user.iter().map(|it| ("user", *it)).collect()
}
