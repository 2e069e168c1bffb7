import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { and, eq } from 'drizzle-orm'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditRecords } from '../../../schema/governance.ts'
import { providers } from '../../../schema/models.ts'
import { runAdmin } from '../../../scripts/admin/run-admin.ts'
import { openCredential, SECRET_ONLY } from '../../../src/gateway/providers/credential.ts'
import { parseApiKey } from '../../../src/identity/api-key.ts'
import { parseToken } from '../../../src/identity/secret-token.ts'
import { configuration } from '../calls/fixtures.ts'
import { unusedUrl } from '../calls/stand-ins.ts'
import { ADMIN_TOKEN, type Harness, startManagement, uniqueName } from './harness.ts'
import { serve } from './serve.ts'

let harness: Harness
let server: { url: string; close(): Promise<void> }

beforeAll(async () => {
  harness = await startManagement()
  server = await serve(harness.app)
}, 60_000)
afterAll(async () => {
  await server.close()
  await harness.close()
})

interface Run {
  code: number
  output: string
  errors: string
}

/** Runs one command line in this process. */
async function admin(
  words: string[],
  options: { environment?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<Run> {
  const lines = { output: [] as string[], errors: [] as string[] }
  const code = await runAdmin(words, {
    environment: { HEADGATE_URL: server.url, ADMIN_TOKEN, ...options.environment },
    readInput: async () => options.input ?? '',
    print: (line) => lines.output.push(line),
    complain: (line) => lines.errors.push(line),
  })
  return { code, output: lines.output.join('\n'), errors: lines.errors.join('\n') }
}

/** Runs a command line that has to work, and parses what it prints with `--json`. */
async function adminJson(words: string[], options: Parameters<typeof admin>[1] = {}) {
  const run = await admin([...words, '--json'], options)
  expect(run, words.join(' ')).toMatchObject({ code: 0 })
  return JSON.parse(run.output)
}

describe('a whole set-up by names', () => {
  it('creates, grants, lists, changes and takes back', async () => {
    const slug = uniqueName('acme')
    const email = `${uniqueName('ada')}@example.com`
    const inside = ['--organization', slug]
    await adminJson(['organizations', 'create', slug, '--name', 'Acme', '--rate-limit', '100'])
    await adminJson(['users', 'create', email, '--name', 'Ada', '--role', 'admin', ...inside])
    await adminJson(['groups', 'create', 'engineers', ...inside])
    await adminJson(['groups', 'add', 'engineers', email, ...inside])
    await adminJson(['entitlements', 'grant', email, 'personal_api_key_access', ...inside])
    const provider = uniqueName('upstream')
    const base = ['--kind', 'anthropic', '--base-url', 'https://api.example.com/v1/']
    await adminJson(['providers', 'create', provider, ...base, '--credential-stdin'], { input: 'sk-one\n' })
    const prices = ['--price-input', '3000000', '--price-output', '15000000']
    const limits = ['--owned-by', 'acme', '--context-window', '200000', '--max-output-tokens', '8000']
    await adminJson(['models', 'set', 'acme/large', ...limits, ...prices, '--route', `${provider}=large-1`])
    await adminJson(['grants', 'create', 'acme/large', '--group', 'engineers', ...inside])
    await adminJson(['credits', 'grant', '--amount', '5000000', '--reason', 'start', ...inside])
    const made = await admin(['keys', 'create', email, '--label', 'laptop', '--scope', 'models', ...inside])
    expect(made.errors).toContain('shown this once')
    const key = /\bhg_\S+/.exec(made.output)?.[0] ?? ''
    const keyId = parseApiKey(key)?.id ?? ''
    expect(keyId).not.toBe('')

    const users = await admin(['users', 'list', ...inside])
    expect(users.output).toMatch(/^EMAIL\s+NAME\s+ROLE\s+ID/)
    expect(users.output).toMatch(new RegExp(`${email}\\s+Ada\\s+admin\\s+\\S+\\s+personal_api_key_access`))
    expect(await adminJson(['groups', 'members', 'engineers', ...inside])).toMatchObject([{ email }])
    expect(await adminJson(['keys', 'list', '--user', email, ...inside])).toMatchObject([{ id: keyId }])
    expect(await adminJson(['credits', 'show', ...inside])).toMatchObject({ available: 5_000_000 })
    const update = ['models', 'set', 'acme/large', '--max-output-tokens', '9000']
    expect(await adminJson(update)).toMatchObject({
      max_output_tokens: 9_000,
      context_window: 200_000,
      prices: { input: 3_000_000, output: 15_000_000 },
      routes: [{ provider, upstream_model: 'large-1' }],
    })
    expect(await adminJson(['models', 'disable', 'acme/large'])).toMatchObject({
      disabled_at: expect.any(String),
    })
    expect(await adminJson(['models', 'enable', 'acme/large'])).toMatchObject({ disabled_at: null })
    const strict = ['--compatibility', 'open-responses']
    expect(await adminJson(['keys', 'update', keyId, ...strict, ...inside])).toMatchObject({
      compatibility: 'open_responses',
    })
    expect(await adminJson(['keys', 'show', keyId, ...inside])).toMatchObject({
      compatibility: 'open_responses',
    })
    expect(await adminJson(['keys', 'revoke', keyId, ...inside])).toMatchObject({
      revoked_at: expect.any(String),
    })
    const environment = { HEADGATE_ORGANIZATION: slug }
    const disabled = await adminJson(['users', 'disable', email], { environment })
    expect(disabled.disabled_at).toEqual(expect.any(String))
    expect(await adminJson(['users', 'enable', email], { environment })).toMatchObject({ disabled_at: null })
    const limit = await adminJson(['organizations', 'update', slug, '--rate-limit', 'none'])
    expect(limit.rate_limit_per_minute).toBeNull()
  })

  it('makes service accounts, and setup links of persons', async () => {
    const slug = uniqueName('acme')
    const inside = ['--organization', slug]
    await adminJson(['organizations', 'create', slug, '--name', 'Acme'])
    const [robot, ada] = [`${uniqueName('robot')}@example.com`, `${uniqueName('ada')}@example.com`]
    const create = (email: string, ...more: string[]) =>
      adminJson(['users', 'create', email, '--name', 'Name', ...more, ...inside])
    expect(await create(robot, '--kind', 'service')).toMatchObject({ kind: 'service' })
    expect(await create(ada)).toMatchObject({ kind: 'person' })
    const made = await admin(['users', 'setup-link', ada, ...inside])
    expect(made).toMatchObject({ code: 0, errors: expect.stringContaining('shown this once') })
    const token = /\bhgl_\S+/.exec(made.output)?.[0] ?? ''
    expect(parseToken('hgl', token)).not.toBeNull()
    const shown = await harness.request('POST', '/setup', { token }, { 'sec-fetch-site': 'same-origin' })
    expect(shown).toMatchObject({ status: 200, json: { user: { email: ada } } })
    const refused = await admin(['users', 'setup-link', robot, ...inside])
    expect(refused).toMatchObject({ code: 1, errors: expect.stringContaining('service account') })
    expect(refused.output).not.toContain('hgl_')
  })

  it('takes a credential from the environment as well, and prints none', async () => {
    const name = uniqueName('provider')
    const words = ['providers', 'create', name, '--kind', 'anthropic', '--base-url', 'https://a.example.com']
    const missing = await admin(words)
    expect(missing).toMatchObject({ code: 2, errors: expect.stringContaining('--credential-stdin') })
    const empty = await admin([...words, '--credential-stdin'], { input: '\n' })
    expect(empty.code).toBe(2)
    const made = await admin(words, { environment: { PROVIDER_CREDENTIAL: 'sk-from-environment' } })
    expect(made.code).toBe(0)
    expect(made.output + made.errors).not.toContain('sk-from')
    const [row] = await harness.database.select().from(providers).where(eq(providers.name, name))
    const sealed = row?.sealedCredential ?? ''
    const opened = openCredential(configuration().VAULT_KEYS, row?.id ?? '', SECRET_ONLY, sealed)
    expect(opened.parts).toEqual({ secret: 'sk-from-environment' })
    const shown = await admin(['providers', 'show', name])
    expect(shown.output).toMatch(/credential_set\s+true/)
  })

  it('takes a credential of named parts as JSON, and repeats none of it when it is none', async () => {
    const name = uniqueName('provider')
    const words = ['providers', 'create', name, '--kind', 'anthropic', '--base-url', 'https://a.example.com']
    const parts = [...words, '--credential-stdin', '--credential-parts']
    for (const input of [
      'sk-not-json',
      '["sk-x"]',
      '"sk-x"',
      '{"secret":',
      '{"secret":1}',
      '{"sk-x":"sk-y"}',
    ]) {
      const refused = await admin(parts, { input })
      expect(refused.code, input).not.toBe(0)
      expect(refused.output + refused.errors).not.toMatch(/sk-/)
    }
    await adminJson(parts, { input: '{"secret":"sk-part"}\n' })
    const update = ['providers', 'update', name, '--credential-parts']
    await adminJson(update, { environment: { PROVIDER_CREDENTIAL: '{"secret":"sk-next"}' } })
    expect(await admin(update)).toMatchObject({ code: 2 })
    const [row] = await harness.database.select().from(providers).where(eq(providers.name, name))
    const sealed = row?.sealedCredential ?? ''
    const opened = openCredential(configuration().VAULT_KEYS, row?.id ?? '', SECRET_ONLY, sealed)
    expect(opened.parts).toEqual({ secret: 'sk-next' })
  })

  it('reads more than one page', async () => {
    const slug = uniqueName('pages')
    await adminJson(['organizations', 'create', slug, '--name', 'Pages'])
    const environment = { HEADGATE_ORGANIZATION: slug }
    for (const name of ['a', 'b', 'c']) await adminJson(['groups', 'create', name], { environment })
    const some = await admin(['groups', 'list', '--limit', '2'], { environment })
    expect(some.output.split('\n')).toHaveLength(3)
    expect(some.errors).toContain('There are more')
    const all = await admin(['groups', 'list', '--all'], { environment })
    expect(all.output.split('\n')).toHaveLength(4)
    expect(all.errors).toBe('')
  })

  it('says so when a change is not yet known everywhere', async () => {
    const slug = uniqueName('late')
    await adminJson(['organizations', 'create', slug, '--name', 'Late'])
    harness.ledgers.deaf = true
    try {
      const run = await admin(['organizations', 'disable', slug])
      expect(run).toMatchObject({ code: 0, errors: expect.stringContaining('within a minute') })
    } finally {
      harness.ledgers.deaf = false
    }
  })
})

describe('DLP policies', () => {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-policies-'))
  afterAll(() => rmSync(folder, { recursive: true }))
  const file = (name: string, contents: unknown) => {
    const path = join(folder, name)
    writeFileSync(path, typeof contents === 'string' ? contents : JSON.stringify(contents))
    return path
  }
  const rules = (action: string) => [{ detector: 'email', action }]

  it('are created, changed, tried, looked up and deleted by name', async () => {
    const slug = uniqueName('acme')
    await adminJson(['organizations', 'create', slug, '--name', 'Acme'])
    const environment = { HEADGATE_ORGANIZATION: slug }
    const run = (...words: string[]) => adminJson(words, { environment })
    await run('groups', 'create', 'support')
    const [group] = await run('groups', 'list')
    await run('integrations', 'add', 'mail', '--url', 'https://mcp.service.test/mcp', '--auth', 'bearer')
    const path = file('policy.json', { directions: ['request'], rules: rules('redact') })
    expect(
      await run(
        'dlp-policies',
        'create',
        'no-mail',
        '--file',
        path,
        '--group',
        'support',
        '--integration',
        'mail',
      ),
    ).toMatchObject({
      name: 'no-mail',
      version: 1,
      scope: { group_ids: [group.id], integration_ids: ['mail'] },
    })
    expect(await run('dlp-policies', 'list')).toMatchObject([{ name: 'no-mail', enabled: true }])
    const change = JSON.stringify({ rules: rules('block') })
    const changed = ['dlp-policies', 'update', 'no-mail', '--file', '-', '--everybody']
    expect(await adminJson(changed, { environment, input: change })).toMatchObject({
      version: 2,
      scope: {},
      rules: rules('block'),
    })
    expect(await run('dlp-policies', 'disable', 'no-mail')).toMatchObject({ version: 3, enabled: false })
    expect(await run('dlp-policies', 'enable', 'no-mail')).toMatchObject({ version: 4, enabled: true })
    expect(await run('dlp-policies', 'update', 'no-mail', '--name', 'mail')).toMatchObject({ version: 5 })

    const text = 'ada@example.com, grace@example.org\n\nnobody'
    const tried = await admin(['dlp', 'test', '--policy', 'mail'], { environment, input: text })
    expect(tried.output.split('\n')).toHaveLength(3)
    expect(tried.output).toMatch(/^START\s+END\s+DETECTOR\s+CATEGORY\s+SCORE\s+ACTION\n0\s+15\s+email\s/)
    expect(tried.errors).toBe('The call would be refused.')
    const dry = await admin(['dlp', 'dry-run', '--file', path], { environment, input: text })
    expect(dry.output).toMatch(/email\s+contact\s+redact\s+2$/)
    expect(dry.errors).toBe('1 of 2 with findings, 0 would be blocked')
    const detectors = await admin(['dlp', 'detectors'])
    expect(detectors.output).toMatch(/^email\s+contact\s+0\.5\s/m)

    const { id } = await run('dlp-policies', 'show', 'mail')
    expect(await run('dlp-policies', 'delete', 'mail')).toEqual({ id, deleted: true })
    expect(await run('dlp-policies', 'versions', id)).toHaveLength(5)
    expect(await run('dlp-policies', 'version', id, '1')).toMatchObject({
      name: 'no-mail',
      rules: rules('redact'),
    })
  })

  let organization: string
  beforeAll(async () => {
    organization = uniqueName('acme')
    await adminJson(['organizations', 'create', organization, '--name', 'Acme'])
    await adminJson(['groups', 'create', 'x', '--organization', organization])
  })

  it.each<[words: string, code: number, message: string]>([
    ['dlp-policies create x', 2, 'needs --file'],
    ['dlp-policies create x --file nowhere.json', 2, 'nowhere.json cannot be read: ENOENT'],
    ['dlp-policies create x --file {list}', 2, 'does not hold a JSON object'],
    ['dlp-policies create x --file {bad}', 1, '400 directions: is required'],
    ['dlp-policies show nobody', 1, 'no DLP policy is called "nobody"'],
    ['dlp-policies update x --everybody --group x', 2, '--everybody goes with none'],
    ['dlp test', 2, 'which policy?'],
    ['dlp test --policy x --file y', 2, 'which policy?'],
    ['dlp test --file -', 2, '--file takes a path'],
    ['dlp dry-run --file {bad}', 1, 'no line on standard input'],
  ])('%s', async (words, code, message) => {
    const paths = { '{list}': file('list.json', []), '{bad}': file('bad.json', {}) }
    const filled = words.split(' ').map((word) => paths[word as keyof typeof paths] ?? word)
    const run = await admin(filled, { environment: { HEADGATE_ORGANIZATION: organization } })
    expect(run).toMatchObject({ code, output: '' })
    expect(run.errors).toContain(message)
  })
})

describe('agents', () => {
  const yaml = (name: string, more = '') => `
name: ${name}
inputs:
  - name: City
steps:
  - model: acme/model
    instructions: |
      Write about {{City}}.
      Two lines.
${more}`

  it('are applied, exported, versioned and removed as files', async () => {
    const slug = uniqueName('acme')
    const email = `${uniqueName('person')}@example.com`
    const inOrganization = ['--organization', slug]
    await admin(['organizations', 'create', slug, '--name', 'Acme'])
    await admin(['users', 'create', email, '--name', 'Person', ...inOrganization])
    const apply = (input: string, ...more: string[]) =>
      admin(['agents', 'apply', '--file', '-', '--json', ...more, ...inOrganization], { input })
    const name = uniqueName('writer')
    expect(await apply(yaml(name))).toMatchObject({ code: 2, errors: expect.stringContaining('--creator') })
    const made = await apply(yaml(name), '--creator', email)
    expect([made.code, made.errors]).toEqual([0, ''])
    expect(JSON.parse(made.output)).toMatchObject({ name, version: 1, visibility: 'creator' })
    const same = await apply(yaml(name))
    expect(JSON.parse(same.output)).toMatchObject({ version: 1 })
    expect(same.errors).toContain('nothing was changed')
    const next = await apply(yaml(name, 'visibility: organization'), '--version', '1')
    expect(JSON.parse(next.output)).toMatchObject({ version: 2, visibility: 'organization' })
    expect(await apply(yaml(name), '--version', '1')).toMatchObject({ code: 1 })
    const wrong = await apply(yaml(name, 'steps: []'))
    expect([wrong.code, wrong.errors]).toEqual([2, expect.stringContaining('not valid YAML')])
    const bad = await apply(yaml(name, 'visibility: everybody'))
    expect([bad.code, bad.errors]).toEqual([1, expect.stringContaining('visibility')])
    const bomb = await apply('a: &a [x]\nb: *a\n')
    expect(bomb.code).toBe(2)

    const exported = await admin(['agents', 'export', name, ...inOrganization])
    expect(exported.output).toContain('Write about {{City}}.\n')
    expect((await apply(exported.output)).errors).toContain('nothing was changed')
    const first = await admin([
      'agents',
      'export',
      name,
      '--version',
      '1',
      '--format',
      'json',
      ...inOrganization,
    ])
    expect(JSON.parse(first.output)).toMatchObject({ name, visibility: 'creator' })
    const renamed = yaml(uniqueName('renamed'))
    expect(JSON.parse((await apply(renamed, '--agent', name)).output)).toMatchObject({ version: 3 })
    const list = await admin(['agents', 'list', ...inOrganization])
    expect(list.output.split('\n')).toHaveLength(2)
    const id = JSON.parse(made.output).id
    const versions = await admin(['agents', 'versions', id, ...inOrganization])
    expect(versions.output.split('\n')).toHaveLength(4)
    const runs = await admin(['agents', 'runs', id, ...inOrganization])
    expect(runs.output).toBe('(none)')
    const missing = await admin(['agents', 'cancel', id, ...inOrganization])
    expect([missing.code, missing.errors]).toEqual([1, expect.stringContaining('404')])
    expect((await admin(['agents', 'remove', id, ...inOrganization])).code).toBe(0)
    expect((await admin(['agents', 'show', id, ...inOrganization])).code).toBe(1)
  })
})

describe('audit verify', () => {
  it('prints each verified range, then the first broken record', async () => {
    const slug = uniqueName('audited')
    const { id } = await adminJson(['organizations', 'create', slug, '--name', 'Audited'])
    for (const name of ['a', 'b', 'c']) {
      await adminJson(['groups', 'create', name, '--organization', slug])
    }
    const before = await admin(['audit', 'verify', '--organization', slug])
    expect(before).toMatchObject({ code: 0 })
    expect(before.output).toContain(`ok      ${slug} shard 0: records 1 to 4`)
    expect(before.output).toContain('checkpoints: none yet')
    await adminJson(['audit', 'checkpoint'])
    const all = await admin(['audit', 'verify'])
    expect(all).toMatchObject({
      code: 0,
      output: expect.stringContaining('(deployment) shard 0: records 1 to'),
    })
    expect(all.output).toMatch(/intact$/)

    const third = and(eq(auditRecords.organizationId, id), eq(auditRecords.sequence, 3))
    await harness.database.update(auditRecords).set({ body: '{"kind":"change"}' }).where(third)
    const altered = await admin(['audit', 'verify'])
    expect(altered.code).toBe(3)
    expect(altered.output).toContain(
      `BROKEN  ${slug} shard 0: records 1 to 2 intact; first broken record: 3 (altered: `,
    )
    await harness.database.delete(auditRecords).where(eq(auditRecords.organizationId, id))
    const deleted = await admin(['audit', 'verify'])
    expect(deleted.code).toBe(3)
    expect(deleted.output).toMatch(/BROKEN {2}checkpoint \S+ \(chain_differs: /)
  })

  it('goes on when a ledger cannot write, and tells', async () => {
    harness.ledgers.away = true
    try {
      const run = await admin(['audit', 'verify'])
      expect(run.errors).toContain('could not write what it holds')
      expect(run.output).toContain('shard 0')
      expect(run.output).toMatch(/^UNKNOWN .*: not compared with its ledger/m)
      expect(run.code).not.toBe(0)
    } finally {
      harness.ledgers.away = false
    }
  })
})

describe('errors', () => {
  const wrong: Array<[words: string, code: number, message: string]> = [
    ['nonsense list', 2, 'there is no command "nonsense"'],
    ['keys', 2, 'keys takes one of: list, show, create, update, rotate, revoke'],
    ['keys explode', 2, 'keys takes one of'],
    ['keys show --organization x', 2, 'needs <key-id>'],
    ['organizations list extra', 2, 'does not take "extra"'],
    ['organizations list --colour', 2, "'--colour'"],
    ['organizations create acme', 2, 'needs --name'],
    ['organizations list --limit many', 2, '--limit takes a whole number'],
    ['organizations list --limit 0', 2, '--limit takes a number from 1'],
    ['users list', 2, 'which organization?'],
    ['users list --organization nobody-has-this', 1, 'no organization has the slug'],
    ['organizations create Bad.Slug --name x', 1, '400 slug: must be lowercase'],
    ['organizations show 11111111-2222-4333-8444-555555555555', 1, '404 Organization'],
    ['providers show nobody', 1, 'no provider is called "nobody"'],
    ['models disable nobody', 1, 'there is no model "nobody"'],
    ['models set a --route nonsense', 2, '--route takes provider=model'],
    ['grants create a --organization 11111111-2222-4333-8444-555555555555', 2, 'to whom?'],
  ]
  it.each(wrong)('%s', async (words, code, message) => {
    const run = await admin(words.split(' '))
    expect(run).toMatchObject({ code, output: '' })
    expect(run.errors).toMatch(/^admin: /)
    expect(run.errors).toContain(message)
  })

  it('tell a wrong token, a missing one, an unsafe address and a gateway that is not there', async () => {
    const list = ['organizations', 'list']
    const denied = await admin(list, { environment: { ADMIN_TOKEN: 'a-wrong-token-of-some-length' } })
    expect(denied).toMatchObject({ code: 1, errors: expect.stringContaining('401') })
    expect(denied.errors).not.toContain('a-wrong-token')
    const missing = await admin(list, { environment: { ADMIN_TOKEN: '' } })
    expect(missing).toMatchObject({ code: 1, errors: 'admin: HEADGATE_URL is set, ADMIN_TOKEN is not' })
    const unsafe = await admin(list, { environment: { HEADGATE_URL: 'http://gateway.example.com' } })
    expect(unsafe.errors).toContain('must be https')
    const nobody = await admin(list, { environment: { HEADGATE_URL: await unusedUrl() } })
    expect(nobody).toMatchObject({ code: 1, errors: expect.stringContaining('does not answer') })
  })

  it('shows control characters of names instead of sending them to the terminal', async () => {
    const run = await admin(['organizations', 'create', 'x', '--name', '\u001b[31mred'])
    expect(run).toMatchObject({ code: 1, errors: expect.stringContaining('control characters') })
    expect(run.errors).not.toContain('\u001b')
  })
})

describe('help', () => {
  it('lists every command with one line, and the options of one', async () => {
    for (const words of [['--help'], ['-h'], ['help']]) {
      const run = await admin(words)
      expect(run.code).toBe(0)
      for (const command of ['organizations create <slug>', 'audit verify', 'models set <model>']) {
        expect(run.output).toMatch(new RegExp(`^ {2}${command} +[A-Z]`, 'm'))
      }
    }
    expect((await admin(['keys', '--help'])).output).not.toContain('audit verify')
    expect((await admin(['keys', 'create', '--help'])).output).toContain('--expires-at <time>')
    expect(await admin([])).toMatchObject({ code: 2, output: '' })
  })
})

describe('as a program', () => {
  const script = fileURLToPath(new URL('../../../scripts/admin.ts', import.meta.url).href)

  async function run(words: string[], environment: NodeJS.ProcessEnv): Promise<Run> {
    const child = spawn(process.execPath, [script, ...words], {
      env: { PATH: process.env.PATH, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const ended = new Promise<number>((resolve) => child.once('exit', (code) => resolve(code ?? -1)))
    const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
    return { code, output, errors }
  }

  it('finds the local system by its file, and ends with the exit code', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-admin-'))
    try {
      const environment = { HEADGATE_FOLDER: folder }
      const nowhere = { HEADGATE_URL: undefined, ADMIN_TOKEN: undefined, ...environment }
      const none = await admin(['organizations', 'list'], { environment: nowhere })
      expect(none).toMatchObject({ code: 1, errors: expect.stringContaining('npm run dev') })
      const local = { base_url: server.url, admin_token: ADMIN_TOKEN }
      writeFileSync(join(folder, 'dev.json'), JSON.stringify(local))
      const listed = await run(['organizations', 'list', '--json'], environment)
      expect(listed).toMatchObject({ code: 0, errors: '' })
      expect(JSON.parse(listed.output)).toEqual(expect.any(Array))
    } finally {
      rmSync(folder, { recursive: true })
    }
  }, 30_000)
})
