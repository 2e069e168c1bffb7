import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { type RunningTools, startTools } from '../../scripts/node/tools-script.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import { expectHarmless, HOSTILE_COMMANDS } from '../harness/hostile-commands.ts'
import { send } from '../harness/send.ts'
import { TOOLS_WRANGLER_FILE } from '../harness/start-gateway.ts'
import { type StartedWorker, startWorker } from '../harness/start-worker.ts'
import { bearer, createTenant, type Tenant } from '../harness/tenant.ts'

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
    hangLimitMs: 2_000,
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

describe('a hostile command', () => {
  const bystander = {
    organizationId: crypto.randomUUID(),
    userId: crypto.randomUUID(),
    workspaceId: 'conv_bystander',
  }

  it.each(HOSTILE_COMMANDS.filter(({ long }) => !long))('$name', { timeout: 60_000 }, async (hostile) => {
    await expectHarmless(tools.url, hostile, bystander, async () => {
      expect(await gatewayTime()).toBeLessThan(2_000)
    })
    expect(await gatewayTime()).toBeLessThan(2_000)
  })

  it('that hangs has its process killed and started again', () => {
    expect(reports.length).toBeGreaterThan(0)
    expect(new Set(reports)).toEqual(
      new Set(['the process of the tools does not answer; it is killed and started again']),
    )
  })
})
