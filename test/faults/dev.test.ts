import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { portProblem } from '../../scripts/node/ports.ts'
import { type DevFile, type DevRun, freePortPair, startDev } from '../harness/dev-command.ts'

const execute = promisify(execFile)

let folder: string
let port: number
let runs: DevRun[]

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'headgate-dev-'))
  port = await freePortPair()
  runs = []
})
afterEach(async () => {
  for (const run of runs) {
    if (run.process.exitCode === null && run.process.signalCode === null) run.process.kill('SIGTERM')
    await run.ended()
  }
  await nothingLeft()
  rmSync(folder, { recursive: true, force: true })
})

function start(
  options: Parameters<typeof startDev>[2] = {},
  environment: Record<string, string> = {},
): DevRun {
  const run = startDev(folder, { PORT: String(port), ...environment }, options)
  runs.push(run)
  return run
}

/** Ids of the processes that work for this folder or port, wherever they descend from. */
function processes(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const line = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
        return line.includes(folder) || line.includes(`127.0.0.1:${port}`)
      } catch {
        return false
      }
    })
    .map(Number)
}

const processOf = (part: string) =>
  processes().find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(part)) ?? 0

async function nothingLeft(): Promise<void> {
  await vi.waitFor(() => expect(processes()).toEqual([]), { timeout: 15_000, interval: 100 })
  expect([await portProblem(port), await portProblem(port + 1)]).toEqual([null, null])
}

const call = (url: string, key: string, model = 'scripted-chat') =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages: [{ role: 'user', content: 'Hello' }] }),
  })

const audited = async ({ base_url, admin_token }: DevFile): Promise<number> => {
  const headers = { authorization: `Bearer ${admin_token}` }
  const list = await (await fetch(`${base_url}/api/organizations`, { headers })).json()
  const acme = (list as { data: Array<{ id: string; slug: string }> }).data.find(
    ({ slug }) => slug === 'acme',
  )
  const records = await fetch(`${base_url}/api/organizations/${acme?.id}/audit?limit=200`, { headers })
  return ((await records.json()) as { data: unknown[] }).data.length
}

const asOwner = ({ keys }: DevFile) => ({
  authorization: `Bearer ${keys.owner}`,
  'content-type': 'application/json',
})

async function toolNames(file: DevFile): Promise<string[]> {
  const answer = await fetch(`${file.base_url}/v1/mcp`, {
    method: 'POST',
    headers: { ...asOwner(file), accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }),
  })
  return [...(await answer.text()).matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name)
}

/** Runs an agent to its end. @returns the text of its result. */
async function runAgent(file: DevFile, name: string): Promise<string> {
  const headers = asOwner(file)
  const body = JSON.stringify({ agentId: file.agents[name] })
  const begun = await fetch(`${file.base_url}/v1/agents/runs`, { method: 'POST', headers, body })
  expect(begun.status).toBe(202)
  const { runId } = (await begun.json()) as { runId: string }
  const run = await vi.waitFor(
    async () => {
      const read = await (await fetch(`${file.base_url}/v1/runs/${runId}`, { headers })).json()
      const { status, result } = read as { status: string; result: string | null }
      expect(status).not.toBe('in_progress')
      return { status, result }
    },
    { timeout: 60_000, interval: 200 },
  )
  expect(run.status).toBe('success')
  return JSON.parse(run.result ?? '').parts[0].text
}

describe.skipIf(process.platform !== 'linux')('npm run dev', () => {
  it('serves calls on both hosts and prints addresses and keys that work', async () => {
    const run = start({ viaNpm: true })
    const file = await run.ready()
    expect(file).toMatchObject({
      base_url: `http://127.0.0.1:${port}`,
      llm_url: `http://127.0.0.1:${port + 1}`,
    })
    expect(Object.keys(file.keys)).toEqual([
      'owner',
      'member',
      'restricted',
      'limited',
      'revoked',
      'no_mcp',
      'broke',
      'other_org',
    ])
    const { owner = '', restricted = '', revoked = '', broke = '', limited = '' } = file.keys
    for (const url of [file.base_url, file.llm_url]) expect((await call(url, owner)).status).toBe(200)
    expect((await call(file.base_url, revoked)).status).toBe(401)
    expect((await call(file.base_url, broke)).status).toBe(429)
    expect(file.denied_models.length).toBeGreaterThan(0)
    for (const model of file.denied_models) {
      expect((await call(file.base_url, restricted, model)).status).toBe(403)
    }
    const statuses: number[] = []
    for (let index = 0; index < 3; index += 1) statuses.push((await call(file.base_url, limited)).status)
    expect(statuses).toEqual([200, 200, 429])

    expect(run.output().stdout).toMatch(/ready after \d+\.\d s/)
    const curl =
      run
        .output()
        .stdout.split('\n')
        .find((line) => line.startsWith('  curl ')) ?? ''
    const { stdout } = await execute('sh', ['-c', `${curl} -s`])
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion', model: 'scripted-chat' })
    const print = '. "$1/env.sh" && echo "$HEADGATE_URL $HEADGATE_KEY $HEADGATE_AGENT $ADMIN_TOKEN"'
    const shell = await execute('sh', ['-c', print, 'sh', folder])
    expect(shell.stdout).toBe(
      `${file.base_url} ${owner} ${file.agents['Ticket report']} ${file.admin_token}\n`,
    )
    for (const name of ['dev.json', 'env.sh', 'secrets.json', 'worker.json']) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
    }
    // Command lines and logs are open to others than the owner of the files above.
    const open = [
      ...processes().map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8')),
      ...readdirSync(join(folder, 'logs'), { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => readFileSync(join(folder, 'logs', entry.name), 'utf8')),
    ].join('\n')
    for (const secret of [...Object.values(file.keys), file.admin_token]) expect(open).not.toContain(secret)
  })

  it('has two agents that work, one of several steps with tools', async () => {
    const file = await start().ready()
    // Its tools are listed by a job.
    await vi.waitFor(async () => expect(await toolNames(file)).toContain('tickets_listTickets'), {
      timeout: 20_000,
      interval: 200,
    })
    const tickets = '- 1, The printer is out of paper\n- 2, Order chairs'
    expect(await runAgent(file, 'Ticket digest')).toBe(tickets)
    expect(await runAgent(file, 'Ticket report')).toContain(`# Tickets\n\n${tickets}`)
  })

  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)('ends every child on %s', async (signal) => {
    const run = start()
    await run.ready()
    expect(processes().length).toBeGreaterThan(3)
    run.process.kill(signal)
    expect(await run.ended()).toBe(0)
    await nothingLeft()
    expect(readdirSync(folder)).not.toContain('dev.json')
    expect(readdirSync(folder)).not.toContain('worker.json')
  })

  it('ends every child on the Ctrl-C of a terminal, which reaches all processes at once', async () => {
    const run = start({ viaNpm: true })
    await run.ready()
    process.kill(-Number(run.process.pid), 'SIGINT')
    await run.ended()
    await nothingLeft()
  })

  it.each(['SIGTERM', 'SIGKILL'] as const)('ends when npm alone gets %s', async (signal) => {
    const run = start({ viaNpm: true })
    await run.ready()
    run.process.kill(signal)
    await nothingLeft()
  })

  it('ends while it starts', async () => {
    const run = start()
    await vi.waitFor(() => expect(processes().length).toBeGreaterThan(3), { timeout: 10_000 })
    run.process.kill('SIGINT')
    expect(await run.ended()).toBe(0)
    await nothingLeft()
  })

  it('leaves no child when it is killed, and keeps data, keys and secrets for the next start', async () => {
    const first = start()
    const before = await first.ready()
    expect((await call(before.base_url, before.keys.owner ?? '')).status).toBe(200)
    await vi.waitFor(async () => expect(await audited(before)).toBeGreaterThan(0), { timeout: 10_000 })
    const count = await audited(before)
    first.process.kill('SIGKILL')
    await first.ended()
    await nothingLeft()

    const second = start()
    const after = await second.ready()
    expect(after).toEqual(before)
    expect(await audited(after)).toBeGreaterThanOrEqual(count)
    second.process.kill('SIGINT')
    await second.ended()

    const fresh = await start({ parameters: ['--fresh'] }).ready()
    expect(fresh.keys.owner).not.toBe(before.keys.owner)
    expect((await call(fresh.base_url, before.keys.owner ?? '')).status).toBe(401)
    expect((await call(fresh.base_url, fresh.keys.owner ?? '')).status).toBe(200)
  })

  it('refuses a second system beside it, --fresh above all', async () => {
    const run = start()
    const file = await run.ready()
    const second = startDev(folder, { PORT: String(await freePortPair()) }, { parameters: ['--fresh'] })
    expect(await second.ended()).toBe(1)
    expect(second.output().stderr).toBe(
      `headgate: npm run dev runs already (process ${run.pid()}); end it first\n`,
    )
    expect((await call(file.base_url, file.keys.owner ?? '')).status).toBe(200)
  })

  it.each(['postgres', 'redis', 'qstash', 'model-upstream'])(
    'reports that %s died, and ends',
    async (name) => {
      const run = start()
      await run.ready()
      const pid =
        name === 'model-upstream'
          ? childOf(run.pid(), 'model-upstream/main.ts')
          : processOf(`${name}/main.ts`)
      expect(pid).toBeGreaterThan(0)
      process.kill(pid, 'SIGKILL')
      expect(await run.ended()).toBe(1)
      expect(run.output().stderr).toBe(`headgate: ${name} ended unexpectedly (SIGKILL)\n`)
      await nothingLeft()
    },
  )

  it('starts a runtime that crashed again', async () => {
    const run = start()
    const file = await run.ready()
    const pid = processOf('workerd/config.capnp')
    expect(pid).toBeGreaterThan(0)
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(
      async () => {
        // A trigger that ran in it has failed, which is reported too.
        expect(run.output().stderr).toContain('headgate: the Workers runtime crashed and is started again\n')
        const answer = await fetch(`${file.base_url}/health`, { signal: AbortSignal.timeout(1_000) })
        expect(answer.status).toBe(200)
      },
      { timeout: 30_000, interval: 200 },
    )
    expect((await call(file.base_url, file.keys.owner ?? '')).status).toBe(200)
  })
})

function childOf(parent: number, part: string): number {
  const pids = readFileSync(`/proc/${parent}/task/${parent}/children`, 'utf8').trim().split(' ').map(Number)
  return pids.find((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(part)) ?? 0
}
