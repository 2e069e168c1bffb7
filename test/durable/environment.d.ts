/// <reference types="@cloudflare/vitest-plugin/types" />

declare namespace Cloudflare {
  interface Env extends Record<string, unknown> {
    LEDGER: DurableObjectNamespace
    EVENT_LOG: DurableObjectNamespace
    LEDGER_SEEDS: string
    EVENT_LOG_SEEDS: string
  }
}
