import { copyFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { gateway } from '../harness/gateway.ts'
import { createIntegration, type McpServer, mcpTool, startMcpServer } from '../harness/integrations.ts'
import { entitle } from '../harness/mcp.ts'
import { callEntries } from '../harness/records.ts'
import { MESSAGES_MODEL } from '../harness/sdk-clients.ts'
import { askClaudeCode, claudeCodeMissing } from './support/claude-code.ts'
import { type Bench, setUpBench } from './support/client-bench.ts'
import { installLibrary } from './support/client-install.ts'
import { CLIENT_TEST_LIMIT_MS, runClient } from './support/client-run.ts'
import { scriptTurns } from './support/scripted-turns.ts'

/** Real clients of MCP list the tools of an integration through the gateway, and call one. */

const inspector = await installLibrary('mcp-inspector', { '@modelcontextprotocol/inspector': '2.12.0' })
const remote = await installLibrary('mcp-remote', { 'mcp-remote': '0.15.1' })
const aiSdk = await installLibrary('ai-sdk-mcp', { '@ai-sdk/mcp': '2.0.99', ai: '7.0.173', zod: '4.6.7' })

let bench: Bench
let server: McpServer
let slug: string

beforeEach(async () => {
  bench = await setUpBench()
  await entitle(gateway(), bench.tenant.base, bench.tenant.userId)
  server = await startMcpServer(gateway(), { tools: [mcpTool('echo')] })
  slug = (await createIntegration(gateway(), bench.tenant, { url: server.url })).slug
})
afterEach(() => bench.clear())

const endpoint = () => `${bench.proxy.url}/v1/mcp`
const echo = () => `${slug}_echo`
const ECHOED = '{"name":"echo","arguments":{"text":"Hello"}}'

/** The upstream executed one call, and the gateway recorded it. */
async function expectOneCall(): Promise<void> {
  expect(await server.calls('echo')).toBe(1)
  const [entry] = await callEntries(gateway(), bench.tenant, 1, ({ record }) => record.tool === echo())
  expect(entry).toMatchObject({ surface: 'mcp', status: 200 })
}

const limit = { timeout: CLIENT_TEST_LIMIT_MS }

describe.skipIf('missing' in inspector)('MCP Inspector 2.12, command line', limit, () => {
  const inspect = (...parameters: string[]) =>
    runClient({
      program: process.execPath,
      arguments: [
        join('modules' in inspector ? inspector.modules : '', '.bin/mcp-inspector'),
        '--cli',
        endpoint(),
        '--transport',
        'http',
        '--header',
        `Authorization: Bearer ${bench.tenant.key}`,
        ...parameters,
      ],
      environment: bench.environment,
      folder: bench.folder,
    })

  it('lists and calls tools', async () => {
    const list = JSON.parse((await inspect('--method', 'tools/list')).stdout)
    expect(list.tools.map(({ name }: { name: string }) => name)).toContain(echo())
    const call = ['--method', 'tools/call', '--tool-name', echo(), '--tool-arg', 'text=Hello']
    expect(JSON.parse((await inspect(...call)).stdout).content[0].text).toBe(ECHOED)
    await expectOneCall()
  })
})

describe.skipIf('missing' in remote)('mcp-remote 0.15', limit, () => {
  it('lists and calls tools', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    const program = join('modules' in remote ? remote.modules : '', '.bin/mcp-remote')
    const header = `Authorization:Bearer ${bench.tenant.key}`
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [program, endpoint(), '--allow-http', '--header', header],
        env: bench.environment,
        cwd: bench.folder,
        stderr: 'ignore',
      }),
    )
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain(echo())
    const result = await client.callTool({ name: echo(), arguments: { text: 'Hello' } })
    expect(result.content).toEqual([{ type: 'text', text: ECHOED }])
    await client.close()
    await expectOneCall()
  })
})

describe.skipIf('missing' in aiSdk)('AI SDK 7 as a client of MCP', limit, () => {
  it('lists and calls tools', async () => {
    const program = join(bench.folder, 'mcp-ai-sdk.mjs')
    copyFileSync(join(import.meta.dirname, 'programs/mcp-ai-sdk.mjs'), program)
    symlinkSync('modules' in aiSdk ? aiSdk.modules : '', join(bench.folder, 'node_modules'))
    const task = { url: endpoint(), tool: echo(), input: { text: 'Hello' } }
    const { stdout } = await runClient({
      program: process.execPath,
      arguments: [program, JSON.stringify(task)],
      environment: { ...bench.environment, HEADGATE_KEY: bench.tenant.key },
      folder: bench.folder,
    })
    const { names, result } = JSON.parse(stdout)
    expect(names).toContain('platform_search_tools')
    expect(result.content).toEqual([{ type: 'text', text: ECHOED }])
    await expectOneCall()
  })
})

describe.skipIf(claudeCodeMissing)('Claude Code 2.1 as a client of MCP', limit, () => {
  it('calls a tool that its model asks for', async () => {
    const headers = { Authorization: `Bearer ${bench.tenant.key}` }
    const mcpServers = { headgate: { type: 'http', url: endpoint(), headers } }
    writeFileSync(join(bench.folder, 'mcp.json'), JSON.stringify({ mcpServers }))
    const tool = `mcp__headgate__${echo()}`
    const script = await scriptTurns('messages', [
      { calls: [{ name: tool, input: { text: 'Hello' } }] },
      { text: 'It said hello.' },
    ])
    const outcome = await askClaudeCode(bench, {
      prompt: `Say hello. ${script}`,
      model: MESSAGES_MODEL,
      tools: [tool],
      options: ['--mcp-config', 'mcp.json', '--strict-mcp-config'],
    })
    expect(outcome.result).toBe('It said hello.')
    await expectOneCall()
  })
})
