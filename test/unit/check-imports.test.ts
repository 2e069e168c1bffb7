import { describe, expect, it } from 'vitest'
import { checkSources, moduleOf } from '../../scripts/import-rules.ts'
import { importsOf, maskSource } from '../../scripts/source-imports.ts'
import { unusedExports } from '../../scripts/unused-exports.ts'

/** The rules that one file breaks, as `line: rule`. */
const broken = (path: string, text: string): string[] =>
  checkSources([{ path, text }]).map(({ line, rule }) => `${line}: ${rule}`)

describe('reading imports', () => {
  it.each([
    ["import { a } from './a.ts'", './a.ts', false],
    ["import type { A } from './a.ts'", './a.ts', true],
    ["import { type A, type B } from './a.ts'", './a.ts', true],
    ["import { type A, b } from './a.ts'", './a.ts', false],
    ["import a, { type B } from './a.ts'", './a.ts', false],
    ["import * as a from './a.ts'", './a.ts', false],
    ['import data from "./a.json" with { type: "json" }', './a.json', false],
    ["import './a.ts'", './a.ts', false],
    ["export { a } from './a.ts'", './a.ts', false],
    ["export type { A } from './a.ts'", './a.ts', true],
    ["export * from './a.ts'", './a.ts', false],
    ["export * as all from './a.ts'", './a.ts', false],
    ["const a = await import('./a.ts')", './a.ts', false],
    ["type A = import('./a.ts').A", './a.ts', false],
    ["import {\n  a,\n  type B,\n} from './a.ts'", './a.ts', false],
  ])('%s', (text, specifier, typeOnly) => {
    expect(importsOf(text)).toMatchObject([{ specifier, typeOnly }])
  })

  it.each([
    "// import { a } from './a.ts'",
    "/* import { a } from './a.ts' */",
    "/**\n * import { a } from './a.ts'\n */",
    'const text = "import { a } from \'./a.ts\'"',
    "const text = `import { a } from './a.ts'`",
    "const pattern = /import { a } from '.\\/a.ts'/",
    "const list = Array.from('abc')",
    "export const from = 'x'",
    "const important = ('./a.ts')",
  ])('finds none in %s', (text) => {
    expect(importsOf(text)).toEqual([])
  })

  it('finds what is inside of a template and after regular expressions with quotes', () => {
    const text = [
      'const quote = /[\'"]/',
      "const url = 'https://host/path' // a comment with '",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: it is the source under test
      "const text = `a ${`b ${await import('./inner.ts')} c`} d '`",
      'const half = width / 2 / 3',
      "import { last } from './last.ts'",
    ].join('\n')
    expect(importsOf(text).map(({ specifier, line }) => [specifier, line])).toEqual([
      ['./inner.ts', 3],
      ['./last.ts', 5],
    ])
  })

  it('keeps every character in its place', () => {
    const code = '$' + '{d}'
    expect(maskSource(`const a = 'it' /* b */ + \`c ${code} e\` // f\n`)).toBe(
      `const a = '  '         + \`  ${code}  \`     \n`,
    )
  })
})

describe('layers', () => {
  it('names modules', () => {
    expect(moduleOf('src/gateway/protocols/reported-usage.ts')).toBe('gateway')
    expect(moduleOf('src/deps.ts')).toBe('deps')
    expect(moduleOf('scripts/local/redis/main.ts')).toBe('scripts/local')
    expect(moduleOf('scripts/seed.ts')).toBe('scripts')
    expect(moduleOf('schema/models.ts')).toBe('schema')
  })

  it.each([
    ['src/lib/a.ts', '../wire/b.ts', 'lib must not import wire'],
    ['src/wire/a.ts', '../calls/b.ts', 'wire must not import calls'],
    ['src/calls/a.ts', '../gateway/b.ts', 'calls must not import gateway'],
    ['src/identity/a.ts', '../ledger/b.ts', 'identity must not import ledger'],
    ['src/ledger/a.ts', '../dlp/b.ts', 'ledger must not import dlp'],
    ['src/dlp/a.ts', '../calls/b.ts', 'dlp must not import calls'],
    ['src/agents/own-runs.ts', '../admin/b.ts', 'agents must not import admin'],
    ['src/gateway/a.ts', '../responses/b.ts', 'gateway must not import responses'],
    ['src/gateway/a.ts', '../integrations/b.ts', 'gateway must not import integrations'],
    ['src/responses/a.ts', '../agents/b.ts', 'responses must not import agents'],
    ['src/agents/a.ts', '../http/b.ts', 'agents must not import http'],
    ['src/http/a.ts', '../deps.ts', 'http must not import deps other than as types'],
    ['src/calls/a.ts', '../deps.ts', 'calls must not import deps'],
    ['src/console/a.ts', '../wire/b.ts', 'console must not import wire other than as types'],
    ['src/console/a.ts', '../lib/b.ts', 'console must not import lib'],
    ['src/http/a.ts', '../console/b.ts', 'http must not import console'],
    ['schema/a.ts', '../src/lib/b.ts', 'schema must not import lib'],
    ['src/lib/a.ts', '../../scripts/seed.ts', 'lib must not import scripts'],
    ['workers/gateway.ts', '../test/harness/a.ts', 'workers must not import test'],
    ['scripts/local/a.ts', '../../src/calls/b.ts', 'scripts/local must not import calls'],
    ['scripts/local/a.ts', '../seed.ts', 'scripts/local must not import scripts'],
  ])('%s may not import %s', (path, specifier, rule) => {
    expect(broken(path, `\nimport { x } from '${specifier}'\n`)).toEqual([`2: ${rule}`])
    expect(broken(path, `const x = await import('${specifier}')`)).toEqual([`1: ${rule}`])
  })

  it.each(['deps', 'env'])('calls may not import types of %s', (root) => {
    const rule = `1: calls must not import ${root}`
    expect(broken('src/calls/a.ts', `import type { A } from '../${root}.ts'`)).toEqual([rule])
  })

  it.each([
    ['src/calls/a.ts', "import type { Database } from '../../schema/database.ts'"],
    ['src/calls/a.store.ts', "import { users } from '../../schema/identity.ts'"],
    ['src/http/a.ts', "import { type Deps } from '../deps.ts'"],
    ['src/http/routes/a.ts', "import { invokeModel } from '../../gateway/invoke-model.ts'"],
    ['src/agents/a.ts', "import { x } from '../responses/b.ts'"],
    ['src/console/a.ts', "import type { X } from '../wire/b.ts'"],
    ['workers/gateway.ts', "import { createDeps } from '../src/deps.ts'"],
    ['scripts/local/a/b.ts', "import { x } from '../../../src/lib/b.ts'"],
    ['scripts/local/a.ts', "import type { X } from '../../src/wire/b.ts'"],
    ['scripts/seed.ts', "import { x } from '../src/identity/api-key.ts'"],
    ['test/unit/a.test.ts', "import { x } from '../../src/gateway/providers/provider.ts'"],
  ])('%s may write %s', (path, text) => {
    expect(broken(path, text)).toEqual([])
  })
})

describe('floors inside a module', () => {
  it.each([
    ['src/responses/model/a.ts', '../engine/b.ts', 'model must not import engine'],
    ['src/responses/emitter/a.ts', '../object/b.ts', 'emitter must not import object'],
    ['src/responses/items/types/a.ts', '../../emitter/b.ts', 'items must not import emitter'],
    ['src/gateway/protocols/a.ts', '../translation/b.ts', 'protocols must not import translation'],
    ['src/gateway/relay/a.ts', '../invoke-model.ts', 'relay must not import .'],
    ['src/integrations/vault/a.ts', '../brokers/b.ts', 'vault must not import brokers'],
    ['src/agents/runs/a.ts', '../evaluations/b.ts', 'runs must not import evaluations'],
  ])('%s may not import %s, also not as types', (path, specifier, rule) => {
    const module = path.split('/')[1]
    const expected = [`1: in ${module}, ${rule}, which stands above it`]
    expect(broken(path, `import { x } from '${specifier}'`)).toEqual(expected)
    expect(broken(path, `import type { X } from '${specifier}'`)).toEqual(expected)
  })

  it('refuses a folder that has no place', () => {
    expect(broken('src/responses/new/a.ts', "import { x } from '../model/b.ts'")).toEqual([
      '1: responses/new has no place in the order of folders',
    ])
  })

  it.each([
    ['src/responses/engine/a.ts', "import { x } from '../emitter/b.ts'"],
    ['src/responses/model/a.ts', "import type { ResponseDeps } from '../response-deps.ts'"],
    ['src/responses/response-deps.ts', "import type { HostedTool } from './tools/hosted-tool.ts'"],
    ['src/gateway/invoke-model.ts', "import { x } from './relay/b.ts'"],
    ['src/agents/runs/a.ts', "import type { AgentDeps } from '../agent-deps.ts'"],
  ])('%s may write %s', (path, text) => {
    expect(broken(path, text)).toEqual([])
  })

  it('lets a file of types import no values from above', () => {
    expect(broken('src/responses/response-deps.ts', "import { x } from './tools/hosted-tool.ts'")).toEqual([
      '1: responses/. has no place in the order of folders',
    ])
  })
})

describe('doors', () => {
  it.each([
    ['src/gateway/a.ts', "import { Hono } from 'hono'", 'hono is for src/http, src/app.ts and workers'],
    ['src/lib/a.ts', "import type { X } from '@hono/zod-validator'", 'hono is for'],
    ['src/gateway/a.ts', "import { eq } from 'drizzle-orm'", 'drizzle is for *.store.ts files'],
    ['src/gateway/a.ts', "import { x } from 'drizzle-orm/pg-core'", 'drizzle is for *.store.ts files'],
    ['src/gateway/a.ts', "import { models } from '../../schema/models.ts'", 'schema is for *.store.ts files'],
    [
      'src/http/a.ts',
      "import { send } from '../gateway/providers/provider.ts'",
      'only gateway reaches a provider',
    ],
    [
      'src/agents/a.ts',
      "import { x } from '../integrations/upstream/call-upstream.ts'",
      'only integrations reaches',
    ],
    ['src/http/a.ts', "import { Bash } from 'just-bash/browser'", 'just-bash is for src/workspace'],
    [
      'src/responses/a.ts',
      "import { Workspace } from '../workspace/workspace.ts'",
      'only workers/tools runs a workspace',
    ],
    [
      'workers/gateway.ts',
      "import { Workspace } from '../src/workspace/workspace.ts'",
      'only workers/tools runs a workspace',
    ],
    [
      'src/workspace/a.ts',
      "import { admit } from '../calls/governed-call.ts'",
      'workspace must not import calls',
    ],
    ['src/calls/a.ts', "import { safeFetch } from '../lib/safe-fetch.ts'", 'safeFetch is for'],
    ['src/gateway/a.ts', "import * as all from '../lib/safe-fetch.ts'", 'safeFetch is for'],
    ['src/gateway/a.ts', "const answer = await fetch('https://host')", 'outbound requests go through'],
    ['src/gateway/a.ts', 'const send = globalThis.fetch', 'outbound requests go through'],
    ['src/gateway/a.ts', 'const client = create({ fetch })', 'outbound requests go through'],
    ['workers/gateway.ts', "const answer = await fetch('https://host')", 'outbound requests go through'],
  ])('%s: %s', (path, text, rule) => {
    expect(broken(path, text)).toEqual([expect.stringContaining(`1: ${rule}`)])
  })

  it.each([
    ['src/http/a.ts', "import { Hono } from 'hono'"],
    ['src/gateway/catalogue/model-catalogue.store.ts', "import { eq } from 'drizzle-orm'"],
    ['src/responses/a.ts', "import { WorkspaceError } from '../workspace/contract.ts'"],
    ['workers/tools/a.ts', "import { Workspace } from '../../src/workspace/workspace.ts'"],
    ['src/workspace/a.ts', "import { Bash } from 'just-bash/browser'"],
    ['src/gateway/providers/a.ts', "import { safeFetch } from '../../lib/safe-fetch.ts'"],
    ['src/console/a.ts', "const answer = await fetch('/api/organizations')"],
    ['src/gateway/calls/a.ts', "import { checkEgress } from '../../lib/safe-fetch.ts'"],
    ['src/http/a.ts', "import type { Operation } from '../gateway/providers/provider.ts'"],
    ['workers/a.ts', 'export class A {\n  async fetch(request: Request): Promise<Response> {\n  }\n}'],
    ['workers/gateway.ts', 'export default { fetch: app.fetch }'],
    ['src/gateway/a.ts', 'const answer = await stub.fetch(request) // not fetch()'],
    ['src/deps.ts', 'const send = (url: string) => fetch(url)'],
    ['scripts/seed.ts', "const answer = await fetch('https://host')"],
  ])('%s may: %s', (path, text) => {
    expect(broken(path, text)).toEqual([])
  })
})

describe('exports', () => {
  it.each([
    ['src/gateway/a.ts', 'export default 1', '1: default exports'],
    ['test/unit/a.ts', 'export { a as default }', '1: default exports'],
    ['src/gateway/worker.ts', 'export default 1', '1: default exports'],
    ['src/gateway/a.ts', "export * from './b.ts'", '1: export *'],
    [
      'src/gateway/a.ts',
      "export { b } from './b.ts'\nexport type { C } from './c.ts'\n",
      '1: a file of nothing but',
    ],
    ['scripts/a.ts', "import './c.ts'\nexport { b } from './b.ts'", '2: a file of nothing but'],
  ])('%s: %s', (path, text, rule) => {
    expect(broken(path, text)).toContainEqual(expect.stringContaining(rule))
  })

  it.each([
    ['workers/gateway.ts', 'export default {}'],
    ['vitest.config.ts', 'export default {}'],
    ['test/harness/campaign/worker.ts', 'export default {}'],
    ['test/durable/vitest.config.ts', 'export default {}'],
    ['src/gateway/a.ts', "export type { B } from './b.ts'\nexport const c = 1"],
    ['src/gateway/a.ts', "const text = 'export default'"],
  ])('%s may: %s', (path, text) => {
    expect(broken(path, text)).toEqual([])
  })
})

describe('exports that nothing uses', () => {
  const found = (files: Record<string, string>): string[] =>
    unusedExports(Object.entries(files).map(([path, text]) => ({ path, text }))).map(
      ({ path, line, rule }) => `${path}:${line}: ${rule}`,
    )

  it.each([
    'export const a = 1',
    'export async function a() {}',
    'export function* a() {}',
    'export abstract class a {}',
    'export interface a {}',
    'export type a = 1',
    'const b = 1\nexport { b as a }',
  ])('%s', (text) => {
    const [first, ...rest] = found({ 'src/lib/a.ts': text, 'src/lib/b.ts': "import { c } from './a.ts'" })
    expect(first).toMatch(/^src\/lib\/a\.ts:\d: a is exported, and no other file imports it$/)
    expect(rest).toEqual([])
  })

  it.each([
    ['workers/b.ts', "import { a } from '../src/lib/a.ts'"],
    ['scripts/b.ts', "import { type B, a as other } from '../src/lib/a.ts'"],
    ['src/lib/b.ts', "export { a } from './a.ts'\nexport const b = 1"],
    ['src/lib/b.ts', "import * as all from './a.ts'"],
    ['scripts/b.ts', "const { a } = await import('../src/lib/a.ts')"],
  ])('%s uses it: %s', (path, text) => {
    const files = { 'src/lib/a.ts': 'export const a = 1', [path]: text }
    expect(found(files).filter((line) => line.startsWith('src/lib/a.ts'))).toEqual([])
  })

  it('does not take a mention for a use', () => {
    const files = { 'src/lib/a.ts': 'export const a = 1', 'src/lib/b.ts': "// import { a } from './a.ts'" }
    expect(found(files)).toHaveLength(1)
  })

  it('lets tests alone import types, and values that say why', () => {
    const test = { 'test/unit/a.test.ts': "import { a } from '../../src/lib/a.ts'" }
    expect(found({ 'src/lib/a.ts': 'export const a = 1', ...test })).toEqual([
      'src/lib/a.ts:1: a is imported by tests alone: say why with @internal',
    ])
    expect(found({ 'src/lib/a.ts': 'export type a = 1', ...test })).toEqual([])
    const reason = '/**\n * One.\n * @internal A bound that tests reach.\n */'
    expect(found({ 'src/lib/a.ts': `${reason}\nexport const a = 1`, ...test })).toEqual([])
    expect(found({ 'src/lib/a.ts': '/** One. @internal */\nexport const a = 1', ...test })).toHaveLength(1)
    expect(
      found({ 'src/lib/a.ts': `${reason}\nexport const b = 1\nexport const a = 1`, ...test }),
    ).toHaveLength(2)
  })

  it('refuses a reason for tests where others import as well', () => {
    const text = '/** @internal A bound that tests reach. */\nexport const a = 1'
    const files = { 'src/lib/a.ts': text, 'workers/b.ts': "import { a } from '../src/lib/a.ts'" }
    expect(found(files)).toEqual(['src/lib/a.ts:2: a is imported by more than tests: it is not @internal'])
  })
})
