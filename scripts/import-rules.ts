import { posix } from 'node:path'
import { importsOf, lineAt, maskSource, type SourceImport } from './source-imports.ts'

/** A source file, its path relative to the repository with `/` between folders. */
export interface Source {
  path: string
  text: string
}

export interface Violation {
  path: string
  line: number
  rule: string
}

/** A row of the table in ARCHITECTURE: the modules that a module may import besides itself, some only as types, and single files. */
type Allowance = { modules: readonly string[]; types?: readonly string[]; files?: readonly string[] }

/** Plain data, which a browser loads without a library of schemas. */
const ENDPOINT_TABLE = 'src/wire/endpoints/endpoints.ts'
const PERMISSION_TABLE = 'src/wire/endpoints/permissions.ts'

const BASE = ['lib', 'wire', 'schema', 'identity', 'ledger', 'dlp', 'calls']

export const ALLOWED: Record<string, Allowance> = {
  lib: { modules: [] },
  schema: { modules: [] },
  wire: { modules: ['lib'] },
  identity: { modules: ['lib', 'wire', 'schema'] },
  ledger: { modules: ['lib', 'wire', 'schema'] },
  dlp: { modules: ['lib', 'wire', 'schema'] },
  calls: { modules: ['lib', 'wire', 'schema', 'identity', 'ledger', 'dlp'] },
  // These declare the clients and variables that they need as small interfaces of their own; `deps` fits them all.
  gateway: { modules: BASE },
  integrations: { modules: BASE },
  // Modules of the script of tools; the gateway imports only their contract.
  workspace: { modules: ['lib'] },
  responses: { modules: [...BASE, 'gateway', 'integrations', 'workspace'] },
  agents: { modules: [...BASE, 'gateway', 'integrations', 'responses'] },
  admin: { modules: [...BASE, 'gateway', 'integrations', 'responses', 'agents'] },
  http: {
    modules: [...BASE, 'gateway', 'integrations', 'responses', 'agents', 'admin', 'env'],
    types: ['deps'],
  },
  // For browsers too, so it has no schemas.
  client: { modules: [], types: ['wire'], files: [ENDPOINT_TABLE] },
  console: { modules: ['client'], types: ['wire'], files: [ENDPOINT_TABLE, PERMISSION_TABLE] },
  'scripts/local': { modules: ['lib'], types: ['wire'] },
  'scripts/node': { modules: ['lib'] },
  env: { modules: ['lib'] },
}

/**
 * The folders of a module, lowest first: each imports from itself and from those before it. `.` is the files beside the
 * folders; a file of types alone (`types.ts`, `*-deps.ts`) is below all folders and may name the types of each.
 */
export const FLOORS: Record<string, readonly string[]> = {
  gateway: [
    'protocols',
    'translation',
    'providers',
    'catalogue',
    'token-count',
    'calls',
    'relay',
    'upstreams',
    '.',
  ],
  integrations: [
    'vault',
    'upstream',
    'connections',
    'brokers',
    'catalogue',
    '.',
    'platform-tools',
    'mcp-server',
  ],
  agents: ['queue', 'definitions', 'runs', 'evaluations', 'triggers', 'live', '.'],
  responses: [
    'model',
    'open-responses',
    'content',
    'items',
    'storage',
    'log',
    'store',
    'tools',
    'emitter',
    'context',
    'compaction',
    'engine',
    'object',
    'pool',
    'sockets',
  ],
}

/** Folders of `scripts` with rules of their own. */
const SCRIPT_MODULES = ['local', 'node', 'serve']

/** What these folders must not import: what serves callers on a node contains no stand-in and no test. */
const REFUSED_BY_SCRIPTS: Record<string, readonly string[]> = {
  'scripts/local': ['scripts', 'scripts/serve'],
  'scripts/node': ['scripts', 'scripts/local', 'scripts/serve', 'test'],
  'scripts/serve': ['scripts/local', 'test'],
}

/** Folders that deployed code must not import. */
const WORKSHOP = ['scripts', 'scripts/local', 'scripts/node', 'scripts/serve', 'test']

/**
 * The module that a path belongs to: a folder of src by its name, a file directly in src by its name without the
 * ending, a folder of `SCRIPT_MODULES`, or else the top folder.
 */
export function moduleOf(path: string): string {
  const [top = '', second = ''] = path.split('/')
  if (top === 'src') return second.replace(/\.ts$/, '')
  return top === 'scripts' && SCRIPT_MODULES.includes(second) ? `scripts/${second}` : top
}

/** Checks sources against the layout's rules. @returns what breaks them, in order */
export function checkSources(sources: readonly Source[]): Violation[] {
  return sources.flatMap((source) => {
    const masked = maskSource(source.text)
    const imports = importsOf(source.text, masked)
    return [
      ...imports.flatMap((found) => violationsOf(source.path, found)),
      ...fetchViolations(source, masked),
      ...exportViolations(source, masked, imports),
    ].sort((left, right) => left.line - right.line)
  })
}

function violationsOf(path: string, found: SourceImport): Violation[] {
  const rules = found.specifier.startsWith('.')
    ? ownImportRules(path, posix.join(posix.dirname(path), found.specifier), found)
    : packageRules(path, found.specifier)
  return rules.map((rule) => ({ path, line: found.line, rule }))
}

function ownImportRules(path: string, target: string, found: SourceImport): string[] {
  const from = moduleOf(path)
  const to = moduleOf(target)
  const rules: string[] = []
  if (isDeployed(path) && WORKSHOP.includes(to)) rules.push(`${from} must not import ${to}`)
  const allowance = ALLOWED[from]
  if (allowance !== undefined && from !== to && !WORKSHOP.includes(to)) {
    const allowed =
      allowance.modules.includes(to) ||
      allowance.files?.includes(target) ||
      (found.typeOnly && allowance.types?.includes(to))
    const typesToo = allowance.types?.includes(to) ? ` other than as types` : ''
    if (!allowed) rules.push(`${from} must not import ${to}${typesToo}`)
  }
  if (REFUSED_BY_SCRIPTS[from]?.includes(to)) rules.push(`${from} must not import ${to}`)
  return [...rules, ...floorRules(path, target, found), ...doorRules(path, target, found)]
}

/** An import from a folder above the importing one in the same module. */
function floorRules(path: string, target: string, found: SourceImport): string[] {
  const module = moduleOf(path)
  const floors = path.startsWith('src/') && moduleOf(target) === module ? FLOORS[module] : undefined
  if (!floors || isTypesFile(target) || (isTypesFile(path) && found.typeOnly)) return []
  const from = floorOf(path)
  const to = floorOf(target)
  const unknown = [from, to].find((floor) => !floors.includes(floor))
  if (unknown !== undefined) return [`${module}/${unknown} has no place in the order of folders`]
  if (floors.indexOf(from) >= floors.indexOf(to)) return []
  return [`in ${module}, ${from} must not import ${to}, which stands above it`]
}

/** The folder of a file in its module; `.` for a file beside the folders. */
function floorOf(path: string): string {
  const [, , folder = '', inner] = path.split('/')
  return inner === undefined ? '.' : folder
}

const isTypesFile = (path: string): boolean => /^src\/[a-z]+\/([a-z]+-)?(types|deps)\.ts$/.test(path)

/** Parts of a module that only some may reach past its door. */
function doorRules(path: string, target: string, found: SourceImport): string[] {
  const rules: string[] = []
  const from = moduleOf(path)
  if (found.typeOnly) return rules
  if (
    target.startsWith('src/gateway/providers/') &&
    isDeployed(path) &&
    from !== 'gateway' &&
    from !== 'admin'
  ) {
    rules.push('only gateway reaches a provider; others call invokeModel')
  }
  if (target.startsWith('src/integrations/upstream/') && isDeployed(path) && from !== 'integrations') {
    rules.push('only integrations reaches a tool server; others call callTool')
  }
  const isContract = /^src\/workspace\/(contract|limits)\.ts$/.test(target)
  if (moduleOf(target) === 'workspace' && !isContract && !isOfTools(path)) {
    rules.push('only workers/tools runs a workspace; others have its contract and limits')
  }
  const mayFetch =
    /^src\/(gateway\/providers\/|integrations\/(upstream|connections|brokers)\/|responses\/tools\/)/.test(
      path,
    ) ||
    path.startsWith('workers/tools/') ||
    !isDeployed(path)
  if (target === 'src/lib/safe-fetch.ts' && /\bsafeFetch\b|\*/.test(found.clause) && !mayFetch) {
    rules.push(
      'safeFetch is for gateway/providers, responses/tools, and upstream, connections and brokers of integrations',
    )
  }
  if (target.startsWith('schema/') && isDeployed(path) && from !== 'schema' && !mayUseDatabase(path)) {
    rules.push('schema is for *.store.ts files and deps.ts')
  }
  return rules
}

function packageRules(path: string, specifier: string): string[] {
  const rules: string[] = []
  if (!isDeployed(path)) return rules
  const mayUseHono = /^(src\/http\/|src\/app\.ts$|workers\/)/.test(path)
  if (/^(@hono\/|hono($|\/))/.test(specifier) && !mayUseHono) {
    rules.push('hono is for src/http, src/app.ts and workers')
  }
  if (/^just-bash($|\/)/.test(specifier) && moduleOf(path) !== 'workspace') {
    rules.push('just-bash is for src/workspace')
  }
  if (/^drizzle-orm($|\/)/.test(specifier) && !mayUseDatabase(path) && !path.startsWith('schema/')) {
    rules.push('drizzle is for *.store.ts files, deps.ts and schema')
  }
  return rules
}

/** Whether a file belongs to the script of tools, or is not deployed: unit tests may import that script's files. */
const isOfTools = (path: string): boolean =>
  path.startsWith('workers/tools/') || moduleOf(path) === 'workspace' || !isDeployed(path)

const isDeployed = (path: string): boolean => /^(src|workers|schema)\//.test(path)

const mayUseDatabase = (path: string): boolean => /\/[a-z-]+\.store\.ts$/.test(path) || path === 'src/deps.ts'

/** `fetch` itself, called or handed on; not a member or method of that name. */
const GLOBAL_FETCH = /(?<![.\w$])fetch(?![\w$]|\s*[:?])|\b(?:globalThis|self)\.fetch\b/g
const FETCH_METHOD = /^\s*(?:async\s+|override\s+|public\s+)*fetch\s*\([^)]*\)\s*(?::[^={]+)?\{/

function fetchViolations({ path, text }: Source, masked: string): Violation[] {
  const exempt = ['src/lib/safe-fetch.ts', 'src/deps.ts'].includes(path) || moduleOf(path) === 'console'
  if (!isDeployed(path) || exempt) return []
  return [...masked.matchAll(GLOBAL_FETCH)].flatMap((match) => {
    const lineStart = masked.lastIndexOf('\n', match.index) + 1
    if (FETCH_METHOD.test(masked.slice(lineStart, lineStart + 400))) return []
    return [{ path, line: lineAt(text, match.index), rule: 'outbound requests go through lib/safe-fetch.ts' }]
  })
}

function exportViolations({ path, text }: Source, masked: string, imports: SourceImport[]): Violation[] {
  const violations: Violation[] = []
  if (!/^workers\/|^test\/.*\/worker\.ts$|\.config\.ts$/.test(path)) {
    for (const match of masked.matchAll(/\bexport\s+default\b|\bexport\s*\{[^}]*\bas\s+default\b/g)) {
      const rule = 'default exports are for workers and configuration files'
      violations.push({ path, line: lineAt(text, match.index), rule })
    }
  }
  for (const match of masked.matchAll(/\bexport\s*\*/g)) {
    violations.push({ path, line: lineAt(text, match.index), rule: 'export * hides what a module offers' })
  }
  const first = imports.find((found) => found.reexport)
  // A shim takes the place of a library's file.
  const mayReexport = path.startsWith('test/') || path.startsWith('workers/shims/')
  if (first !== undefined && !mayReexport && onlyReexports(masked)) {
    violations.push({ path, line: first.line, rule: 'a file of nothing but re-exports (a barrel)' })
  }
  return violations
}

function onlyReexports(masked: string): boolean {
  const rest = masked
    .replace(/\b(import|export)\b(?:\s+type\b)?[^'"();=]*?\bfrom\s*(['"])[^'"]*\2/g, '')
    .replace(/\bimport\s*(['"])[^'"]*\1/g, '')
  return rest.replace(/[\s;]/g, '') === ''
}
