import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest'
import { freePorts } from '../../scripts/node/ports.ts'
import { type RunningTools, startTools } from '../../scripts/node/tools-script.ts'
import { readRuntimeSettings } from '../../scripts/node/wrangler-settings.ts'
import { expectHarmless, HOSTILE_COMMANDS } from '../harness/hostile-commands.ts'
import { TOOLS_WRANGLER_FILE } from '../harness/start-gateway.ts'
import { type ShellOutput, workspaceCaller } from '../harness/workspaces.ts'
import { TRIALS } from './support/faulty-gateway.ts'

const folder = mkdtempSync(join(tmpdir(), 'headgate-tools-kills-'))
const reports: string[] = []
let tools: RunningTools

beforeAll(async () => {
  const [port = 0] = await freePorts(1)
  const settings = readRuntimeSettings(TOOLS_WRANGLER_FILE)
  const bundleDirectory = inject('bundleDirectory')
  tools = await startTools({
    ...settings,
    bundleDirectory,
    port,
    storageDirectory: folder,
    hangLimitMs: 3_000,
    report: (message) => reports.push(message),
  })
})
afterAll(async () => {
  await tools?.stop()
  rmSync(folder, { recursive: true, force: true })
})

describe('a hostile command that takes long', () => {
  const bystander = { organizationId: crypto.randomUUID(), workspaceId: 'conv_bystander' }

  it.each(HOSTILE_COMMANDS.filter(({ long }) => long))('$name', (hostile) =>
    expectHarmless(tools.url, hostile, bystander),
  )
})

const wait = (milliseconds: number) => new Promise((done) => setTimeout(done, milliseconds))

const times = (text: string, part: string) => text.split(part).length - 1

/** A call of each other tool, and how often it had its effect. */
const KINDS = [
  {
    name: 'write_file',
    argumentsOf: (trial: number) => ({ path: `files/${trial}`, content: `[${trial}]` }),
    effectsOf: (text: string, trial: number) => times(text, `[${trial}]`),
    reads: false,
  },
  {
    name: 'apply_patch',
    argumentsOf: (trial: number) => ({
      patch: `*** Begin Patch\n*** Update File: log\n@@\n+[${trial}]\n*** End Patch`,
    }),
    effectsOf: (text: string, trial: number) => times(text, `[${trial}]`),
    reads: false,
  },
  ...[
    { name: 'read_file', argumentsOf: () => ({ path: 'log' }) },
    { name: 'list_files', argumentsOf: () => ({ path: '.', recursive: true }) },
    { name: 'search_files', argumentsOf: () => ({ pattern: 'f[a-z]*t', path: '.' }) },
  ].map((kind) => ({ ...kind, effectsOf: (text: string) => text.length - 'first\n'.length, reads: true })),
]

interface StartedRun {
  tools: RunningTools
  run: string
  reports: string[]
}

/** Tools whose folder for a run can be made unusable. */
async function startRun(): Promise<StartedRun> {
  const own = mkdtempSync(join(folder, 'run-'))
  const run = join(own, 'run')
  const started: string[] = []
  const [port = 0] = await freePorts(1)
  const options = {
    ...readRuntimeSettings(TOOLS_WRANGLER_FILE),
    bundleDirectory: inject('bundleDirectory'),
    port,
    folder: run,
    storageDirectory: join(own, 'objects'),
    report: (message: string) => void started.push(message),
  }
  return { tools: await startTools(options), run, reports: started }
}

/** Kills the tools while nothing can be written to their folder, as on a full disk, until two starts have failed. */
async function fails({ tools: { pid }, run, reports: made }: StartedRun): Promise<void> {
  renameSync(run, `${run}.away`)
  writeFileSync(run, '')
  process.kill(pid, 'SIGKILL')
  const failed = () => made.filter((message) => message.startsWith('the process of the tools does not start'))
  await vi.waitFor(() => expect(failed()).toHaveLength(2), { timeout: 5_000, interval: 20 })
  rmSync(run)
  renameSync(`${run}.away`, run)
}

describe('the process of the tools is killed while a command runs', () => {
  it('and no command runs twice, whenever that happens', async () => {
    const caller = workspaceCaller(tools.url)
    const results: Array<ShellOutput | Error> = []
    for (let trial = 0; trial < TRIALS; trial++) {
      await vi.waitFor(() => fetch(`${tools.url}/health`), { timeout: 10_000, interval: 20 })
      const command = `echo ${trial} >> log; sleep 0.05; echo ${trial} >> log`
      const running = caller.shell(command).catch((error: Error) => error)
      await wait((trial * 7) % 160)
      process.kill(tools.pid, 'SIGKILL')
      results.push(await running)
    }
    const lines = (await caller.shell('cat log')).stdout.split('\n')
    const outcomes = results.map((result, trial) => {
      const effects = lines.filter((line) => line === String(trial)).length
      if (result instanceof Error) {
        expect(result.message).toMatch(/^(The call was interrupted|The tool is not available now)/)
        expect(effects).toBeLessThanOrEqual(2)
        return 'interrupted'
      }
      expect([trial, effects]).toEqual([trial, 2])
      return 'completed'
    })
    expect(new Set(outcomes)).toEqual(new Set(['interrupted', 'completed']))
  })

  it.each(KINDS)(
    'and no call has its effect twice: $name',
    async ({ name, argumentsOf, effectsOf, reads }) => {
      const caller = workspaceCaller(tools.url)
      await caller.call('write_file', { path: 'log', content: 'first\n' })
      const results: unknown[] = []
      for (let trial = 0; trial < TRIALS / 3; trial++) {
        await vi.waitFor(() => fetch(`${tools.url}/health`), { timeout: 10_000, interval: 20 })
        const running = caller.call(name, argumentsOf(trial)).catch((error: Error) => error)
        await wait((trial * 3) % 25)
        process.kill(tools.pid, 'SIGKILL')
        results.push(await running)
      }
      const text = (await caller.shell('cat log files/* 2>/dev/null')).stdout
      for (const [trial, result] of results.entries()) {
        const effects = effectsOf(text, trial)
        if (!(result instanceof Error)) expect([trial, effects]).toEqual([trial, reads ? 0 : 1])
        else {
          expect(result.message).toMatch(/^(The call was interrupted|The tool is not available now)/)
          expect([trial, effects > (reads ? 0 : 1)]).toEqual([trial, false])
        }
      }
    },
  )

  it('by what it computes, and the command is not run again', async () => {
    const caller = workspaceCaller(tools.url)
    reports.length = 0
    const endless = HOSTILE_COMMANDS.find(({ endless }) => endless)
    await expect(caller.call('shell', { commands: endless?.commands })).rejects.toThrow(
      'The call was interrupted',
    )
    expect((await caller.shell('echo works')).stdout).toBe('works\n')
    expect(reports).toEqual(['the process of the tools does not answer; it is killed and started again'])
  })

  it('and is started again after starts that failed, and after the next kill', async () => {
    const started = await startRun()
    try {
      for (const _ of ['first', 'second']) {
        started.reports.length = 0
        await fails(started)
        await vi.waitFor(() => expect(started.reports.at(-1)).toMatch(/was started again$/), {
          timeout: 10_000,
          interval: 20,
        })
        expect((await fetch(`${started.tools.url}/health`)).status).toBe(200)
      }
    } finally {
      await started.tools.stop()
    }
  })

  it('and waits for no further start when it is stopped', async () => {
    const started = await startRun()
    await fails(started)
    const begun = performance.now()
    await started.tools.stop()
    expect(performance.now() - begun).toBeLessThan(150)
    await expect(fetch(`${started.tools.url}/health`)).rejects.toThrow()
  })

  it('and every hostile command leaves other workspaces as they were', { timeout: 600_000 }, async () => {
    const bystander = workspaceCaller(tools.url)
    await bystander.call('write_file', { path: 'kept', content: 'kept' })
    for (let round = 0; round < 3; round++) {
      for (const { commands, file } of HOSTILE_COMMANDS) {
        const content = file?.() ?? ''
        const calls = [1, 2].map(async () => {
          const caller = workspaceCaller(tools.url)
          await caller.call('write_file', { path: 'file.b64', content })
          await caller.call('shell', { commands, timeout_ms: 1_000 })
        })
        await Promise.allSettled(calls)
        expect((await bystander.shell('cat kept; ls')).stdout).toBe('keptkept\n')
      }
    }
  })
})
