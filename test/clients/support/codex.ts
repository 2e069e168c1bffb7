import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Bench } from './client-bench.ts'
import { installClient } from './client-install.ts'
import { runClient } from './client-run.ts'

const VENDORS =
  'x86_64-unknown-linux-musl,aarch64-unknown-linux-musl,x86_64-apple-darwin,aarch64-apple-darwin'
const client = await installClient({
  name: 'codex',
  npm: '@openai/codex',
  version: '0.169.0',
  programs: VENDORS.split(',').map(
    (vendor) => `@openai/codex-${process.platform}-${process.arch}/vendor/${vendor}/bin/codex`,
  ),
})

/** Whether Codex cannot be run here. */
export const codexMissing = 'missing' in client

const NOTES_SERVER = join(import.meta.dirname, '../programs/notes-server.mjs')

export interface CodexTask {
  prompt: string
  model: string
  /** Whether the client requests the mode of Open Responses, in which a call ends a response as completed. */
  openResponses?: boolean
  /** Effort of reasoning. */
  effort?: string | undefined
}

/** An event of `codex exec --json`. */
export interface CodexEvent extends Record<string, unknown> {
  type: string
  item?: Record<string, unknown> & { type: string }
}

/** Runs Codex on a prompt, with the MCP server `my-notes`. @returns its events. @throws if it fails */
export async function askCodex(bench: Bench, task: CodexTask): Promise<CodexEvent[]> {
  const home = join(bench.folder, '../codex')
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'config.toml'), configuration(bench, task))
  const { stdout } = await runClient({
    program: 'program' in client ? client.program : '',
    // Codex' own sandbox does not work on every machine; the commands that run here are in our scripts.
    arguments: ['exec', '--json', '--skip-git-repo-check', '--sandbox', 'danger-full-access', task.prompt],
    environment: { ...bench.environment, CODEX_HOME: home, HEADGATE_KEY: bench.tenant.key },
    folder: bench.folder,
  })
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as CodexEvent)
}

/** The configuration that a user would write, without features that contact other hosts. */
function configuration({ proxy }: Bench, { model, effort, openResponses = false }: CodexTask): string {
  const text = (value: string) => JSON.stringify(value)
  const header = openResponses ? 'http_headers = { "x-headgate-compatibility" = "open-responses" }' : ''
  return `
model = ${text(model)}
model_provider = "headgate"
${effort === undefined ? '' : `model_reasoning_effort = ${text(effort)}`}
check_for_update_on_startup = false
approval_policy = "never"

[analytics]
enabled = false

[model_providers.headgate]
name = "Headgate"
base_url = ${text(`${proxy.url}/v1`)}
env_key = "HEADGATE_KEY"
wire_api = "responses"
${header}

[mcp_servers.my-notes]
command = ${text(process.execPath)}
args = [${text(NOTES_SERVER)}]
`
}
