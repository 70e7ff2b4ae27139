//! What is counted, for Prometheus. Counters are kept as things happen; what the store knows is
//! read when somebody asks.

use std::sync::OnceLock;

use chancery_store::{Store, StoreError};
use metrics::gauge;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// The recorder is the process's: several servers in one process (tests) share it.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    pub fn install() -> Metrics {
        let handle = RECORDER.get_or_init(|| {
            let recorder = PrometheusBuilder::new().build_recorder();
            let handle = recorder.handle();
            // Only the first one can be set; this is it.
            let _ = metrics::set_global_recorder(recorder);
            gauge!("chancery_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
            handle
        });
        Metrics { handle: handle.clone() }
    }

    pub async fn render(&self, store: &Store) -> Result<String, StoreError> {
        for status in ["pending", "running", "waiting", "completed", "failed", "cancelled"] {
            gauge!("chancery_runs", "status" => status).set(0.0);
        }
        for (status, count) in store.count_by_status().await? {
            gauge!("chancery_runs", "status" => status).set(count as f64);
        }
        let (queued, claimed) = store.queue_depth().await?;
        gauge!("chancery_queue_depth").set(queued as f64);
        gauge!("chancery_queue_claimed").set(claimed as f64);
        gauge!("chancery_permissions_pending").set(store.count_pending().await? as f64);
        self.handle.run_upkeep();
        Ok(self.handle.render())
    }
}
