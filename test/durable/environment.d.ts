/// <reference types="@cloudflare/vitest-plugin/types" />

declare namespace Cloudflare {
  interface Env extends Record<string, unknown> {
    LEDGER: DurableObjectNamespace
    LEDGER_SEEDS: string
  }
}
