import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { freePorts } from '../../scripts/local/ports.ts'
import { type RunningTools, startTools } from '../../scripts/local/tools.ts'
import { readRuntimeSettings } from '../../scripts/local/wrangler-settings.ts'
import { HOSTILE_COMMANDS } from '../harness/hostile-commands.ts'
import { send } from '../harness/send.ts'
import { TOOLS_WRANGLER_FILE } from '../harness/start-gateway.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'
import { type ShellOutput, workspaceCaller } from '../harness/workspaces.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-hostile-'))
let tools: RunningTools
let gateway: StartedWorker
let tenant: Tenant
const reports: string[] = []

beforeAll(async () => {
  const [port = 0] = await freePorts(1)
  tools = await startTools({
    ...readRuntimeSettings(TOOLS_WRANGLER_FILE),
    bundleDirectory: inject('bundleDirectory'),
    port,
    storageDirectory: folder,
    hangLimitMs: 4_000,
    report: (message) => reports.push(message),
  })
  gateway = await startWorker({}, { toolsUrl: tools.url })
  tenant = await createTenant(gateway)
})
afterAll(async () => {
  await gateway?.stop()
  await tools?.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Milliseconds of a call of another tenant through the gateway. */
async function gatewayTime(): Promise<number> {
  const started = performance.now()
  const body = JSON.stringify({ model: 'scripted-chat', messages: [{ role: 'user', content: 'Hello' }] })
  const answer = await send(`${gateway.baseUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { ...bearer(tenant.key), 'content-type': 'application/json' },
    body,
  })
  expect(answer.status).toBe(200)
  return performance.now() - started
}

const REFUSALS = /^(The call was interrupted|The tool is not available now)/

describe('a hostile command', () => {
  const bystander = { organizationId: crypto.randomUUID(), workspaceId: 'conv_bystander' }

  it.each(HOSTILE_COMMANDS)('$name', { timeout: 60_000 }, async ({ commands, never, endless }) => {
    const caller = workspaceCaller(tools.url)
    await caller.call('write_file', { path: 'kept.txt', content: 'kept' })
    const other = workspaceCaller(tools.url, bystander)
    await other.call('write_file', { path: 'canary.txt', content: 'canary' })

    const running = caller.call('shell', { commands, timeout_ms: 2_000, max_output_length: null }).then(
      ({ members }) => members.output as ShellOutput[],
      (error: Error) => error,
    )
    const during = await gatewayTime()
    const result = await running

    expect(during).toBeLessThan(2_000)
    expect(await gatewayTime()).toBeLessThan(2_000)
    if (endless) expect(String(result)).toMatch(/interrupted/)
    else if (result instanceof Error) expect(result.message).toMatch(REFUSALS)
    else {
      const text = result.map(({ stdout, stderr }) => stdout + stderr).join('\n')
      if (never) expect(text).not.toMatch(never)
      expect(text).not.toMatch(/canary|executionLimits|at async|\.js:\d|TypeError/)
      for (const { stdout, stderr } of result) {
        expect(Buffer.byteLength(stdout)).toBeLessThan(70_000)
        expect(Buffer.byteLength(stderr)).toBeLessThan(70_000)
      }
    }
    // Both workspaces work, with what they had.
    expect((await caller.shell('cat kept.txt; echo {} | jq -c .polluted')).stdout).toBe('keptnull\n')
    expect((await other.shell('cat canary.txt; ls; echo $polluted$__proto__')).stdout).toBe(
      'canarycanary.txt\n\n',
    )
  })

  it('that hangs has its process killed and started again', () => {
    expect(reports.length).toBeGreaterThan(0)
    expect(new Set(reports)).toEqual(
      new Set(['the process of the tools does not answer; it is killed and started again']),
    )
  })
})
