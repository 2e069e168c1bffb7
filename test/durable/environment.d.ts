/// <reference types="@cloudflare/vitest-plugin/types" />

declare namespace Cloudflare {
  interface Env extends Record<string, unknown> {
    LEDGER: DurableObjectNamespace
    WORKSPACES: DurableObjectNamespace<import('../../workers/tools/workspace.ts').WorkspaceObject>
    EVENT_LOG: DurableObjectNamespace
    SHARED_LOGS: DurableObjectNamespace
    RESPONSE_STREAMS: DurableObjectNamespace
    RESPONSE_POOLS: DurableObjectNamespace
    RESPONSE_SOCKETS: DurableObjectNamespace
    CONNECTION_CREDENTIALS: DurableObjectNamespace<
      import('../../workers/connection-credentials.ts').ConnectionCredentials
    >
    TOOL_RESPONSES: DurableObjectNamespace
    COUNTING_POOLS: DurableObjectNamespace
    TOOL_POOLS: DurableObjectNamespace
    PATIENT_RESPONSES: DurableObjectNamespace
    PATIENT_POOLS: DurableObjectNamespace
    SCRIPTED_RESPONSES: DurableObjectNamespace<import('./scripted-response.ts').ScriptedResponse>
    CONTENT: R2Bucket
    TOOLS: Fetcher
    LEDGER_SEEDS: string
    EVENT_LOG_SEEDS: string
    RESPONSE_FAULT_RUNS: string
  }
}
