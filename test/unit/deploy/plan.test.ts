import { describe, expect, it } from 'vitest'
import type { ScriptState } from '../../../scripts/deploy/cloudflare-api.ts'
import { NO_RECORD } from '../../../scripts/deploy/lease.ts'
import { hasChanges, planDeployment } from '../../../scripts/deploy/plan.ts'
import type { AccountState, DeploymentPlan, KnownSecrets } from '../../../scripts/deploy/plan-types.ts'
import type { Release, ScriptRelease } from '../../../scripts/deploy/release.ts'
import { renderPlan } from '../../../scripts/deploy/render-plan.ts'
import { parseSettings } from '../../../scripts/deploy/settings.ts'

const SETTINGS = parseSettings({
  stage: 'production',
  account: '0123456789abcdef0123456789abcdef',
  gateway: { hosts: ['gateway.example.com'] },
  database: { neon: { project: 'acme', region: 'aws-eu-central-1' } },
})
const TRIGGERS = { crons: ['17 * * * *'], hosts: ['gateway.example.com'], workersDev: false }
const SECRETS = ['DATABASE_URL', 'UPSTASH_REDIS_REST_TOKEN', 'ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS']
const KNOWN: KnownSecrets = { DATABASE_URL: 'Neon', UPSTASH_REDIS_REST_TOKEN: 'environment' }
const WITH_TOKEN: KnownSecrets = { ...KNOWN, ADMIN_TOKEN: 'file' }

function script(name: string, tag: string): ScriptRelease {
  return {
    name,
    tag,
    entry: 'x.js',
    configuration: { name, main: 'x.js' },
    variables: { BASE_URL: 'https://gateway.example.com' },
    bindings: { LEDGER: 'class Ledger' },
    classMigrations: [
      { tag: 'v1', changes: ['+Ledger'] },
      { tag: 'v2', changes: ['+ResponsePool', '-ResponseStream'] },
    ],
    triggers: name === 'headgate' ? TRIGGERS : { crons: [], hosts: [], workersDev: false },
  }
}

const RELEASE: Release = {
  tools: script('headgate-tools', 'hg-tools1'),
  gateway: script('headgate', 'hg-gateway1'),
}

/** A script that serves a version with this tag. */
const serving = (
  release: ScriptRelease,
  tag = release.tag,
  more: Partial<ScriptState> = {},
): ScriptState => ({
  migrationTag: 'v2',
  versions: [{ id: 'serving', tag }],
  traffic: [{ versionId: 'serving', percentage: 100 }],
  variables: release.variables,
  bindings: release.bindings,
  secrets: release.name === 'headgate' ? SECRETS : [],
  triggers: release.triggers,
  testedVersion: 'serving',
  ...more,
})

const TESTED = { gateway: 'serving', tools: 'serving' }

const DEPLOYED: AccountState = {
  accountName: 'Acme',
  database: { exists: true, pending: [], hasProtectedData: true, tested: TESTED, begunRotations: [] },
  redis: { exists: true },
  bucket: { exists: true },
  tools: serving(RELEASE.tools),
  gateway: serving(RELEASE.gateway),
  hosts: [{ hostname: 'gateway.example.com', service: 'headgate' }],
}

const EMPTY: AccountState = {
  accountName: 'Acme',
  database: {
    exists: false,
    pending: [{ name: '0000_start', removes: false }],
    hasProtectedData: false,
    ...NO_RECORD,
  },
  redis: { exists: true },
  bucket: { exists: false },
  tools: null,
  gateway: null,
  hosts: [],
}

const plan = (
  state: Partial<AccountState> = {},
  known: KnownSecrets = WITH_TOKEN,
  rotations: string[] = [],
) => planDeployment(SETTINGS, RELEASE, { ...DEPLOYED, ...state }, known, rotations)

const changed = ({ steps }: DeploymentPlan) =>
  steps.filter(({ action }) => action !== 'same').map(({ step, name, action }) => `${action} ${step} ${name}`)

const lineOf = ({ steps }: DeploymentPlan, name: string) => steps.find(({ step }) => step === name)

describe('the plan of an account', () => {
  it('without anything creates everything, in the order in which it is applied', () => {
    const first = plan(EMPTY, KNOWN)
    expect(first.problems).toEqual([])
    expect(changed(first)).toEqual([
      'create database Neon acme',
      'change migrations 1 of the schema',
      'create bucket headgate-content',
      'create tools headgate-tools',
      ...SECRETS.map((name) => `create secrets ${name}`),
      'create gateway headgate',
      'create triggers gateway.example.com, 1 schedules',
      'change smoke test /health/ready, tools, a wrong key, management API',
    ])
    expect(first.gateway).toEqual({ kind: 'deploy', isNew: true, base: null })
    for (const name of ['tools', 'gateway'])
      expect(lineOf(first, name)?.details).toContain('variables: +BASE_URL')
    expect(lineOf(plan({ ...EMPTY, redis: { exists: false } }, KNOWN), 'gateway')?.details).toContain(
      'variables: +BASE_URL +UPSTASH_REDIS_REST_URL',
    )
  })

  it('with everything has no change', () => {
    expect(hasChanges(plan())).toBe(false)
    expect(renderPlan(SETTINGS, 'Acme', plan())).toMatch(/create 0 · change 0 · same 13\n[\s\S]*\nno change$/)
  })

  it('does not depend on secrets that are present', () => {
    expect(plan({}, {})).toEqual({ ...plan(), steps: expect.anything() })
    expect(hasChanges(plan({}, {}))).toBe(false)
  })
})

describe('the plan of a script', () => {
  const other = serving(RELEASE.gateway, 'hg-before')

  it('is a version beside the one that serves', () => {
    expect(plan({ gateway: other }).gateway).toEqual({ kind: 'version', versionId: null, base: 'serving' })
    expect(changed(plan({ gateway: other }))).toEqual([
      'change gateway headgate',
      'change smoke test /health/ready, tools, a wrong key, management API',
    ])
  })

  it('continues with the version that an earlier run uploaded', () => {
    const versions = [
      { id: 'uploaded', tag: 'hg-gateway1' },
      { id: 'serving', tag: 'hg-before' },
    ]
    const uploaded = plan({ gateway: { ...other, versions } })
    expect(uploaded.gateway).toEqual({ kind: 'version', versionId: 'uploaded', base: 'serving' })
    expect(lineOf(uploaded, 'gateway')?.details).toContain('uploaded by an earlier run')
  })

  it('continues at the share where an earlier run was cut, and goes back to the version before it', () => {
    const versions = [
      { id: 'new', tag: 'hg-gateway1' },
      { id: 'old', tag: 'hg-before' },
    ]
    for (const percentage of [0, 10, 60]) {
      const traffic = [
        { versionId: 'new', percentage },
        { versionId: 'old', percentage: 100 - percentage },
      ]
      const { gateway } = plan({ gateway: { ...other, versions, traffic } })
      expect(gateway).toEqual({ kind: 'version', versionId: 'new', base: 'old' })
    }
  })

  it('does not take an older upload, which may lack secrets', () => {
    const versions = [
      { id: 'newest', tag: 'hg-other' },
      { id: 'uploaded', tag: 'hg-gateway1' },
      { id: 'serving', tag: 'hg-before' },
    ]
    expect(plan({ gateway: { ...other, versions } }).gateway).toMatchObject({ versionId: null })
  })

  it('uploads a version for a new secret', () => {
    const { gateway, secrets } = plan({}, { ...WITH_TOKEN, QSTASH_TOKEN: 'environment' })
    expect([gateway, secrets]).toEqual([
      { kind: 'version', versionId: null, base: 'serving' },
      ['QSTASH_TOKEN'],
    ])
  })

  it('shows differences by name, never by value', () => {
    const variables = { BASE_URL: 'https://old.example', OLD: 'a credential' }
    const { details } = lineOf(plan({ gateway: { ...other, variables, bindings: {} } }), 'gateway') ?? {}
    expect(details).toEqual(['code before → gateway', 'variables: ~BASE_URL -OLD', 'bindings: +LEDGER'])
  })

  it('with a change of classes is deployed at once, and says that it cannot be rolled back', () => {
    const changedClasses = plan({ gateway: { ...other, migrationTag: 'v1' } })
    expect(changedClasses.gateway).toEqual({ kind: 'deploy', isNew: false, base: 'serving' })
    const line = lineOf(changedClasses, 'gateway')
    expect(line?.details).toContain('classes: +ResponsePool -ResponseStream')
    expect(line?.irreversible).toBe('Cloudflare does not roll back past a change of classes')
    expect(renderPlan(SETTINGS, 'Acme', changedClasses)).toContain(
      'Not undone by a failed test:\n  ! gateway headgate: Cloudflare does not roll back',
    )
  })

  it('refuses to go back behind a newer release', () => {
    const { problems, gateway } = plan({ gateway: { ...other, migrationTag: 'v3' } })
    expect(problems).toEqual([
      expect.stringContaining('class migration v3, which this release does not know'),
    ])
    expect(gateway).toEqual({ kind: 'none' })
  })

  it('that serves and was never tested to the end is tested', () => {
    for (const script of ['gateway', 'tools']) {
      const tested = { ...TESTED, [script]: 'another' }
      const untested = plan({ database: { ...DEPLOYED.database, tested } })
      expect(changed(untested)).toEqual([
        'change smoke test /health/ready, tools, a wrong key, management API',
      ])
    }
  })

  it('of tools alone is tested too', () => {
    const changedTools = plan({ tools: serving(RELEASE.tools, 'hg-before') })
    expect(changed(changedTools)).toEqual([
      'change tools headgate-tools',
      'change smoke test /health/ready, tools, a wrong key, management API',
    ])
  })

  it('continues a rotation that was cut, whose versions have one tag', () => {
    const { tag } = RELEASE.gateway
    const cut = serving(RELEASE.gateway, tag, {
      versions: [
        { id: 'rotated', tag },
        { id: 'serving', tag },
      ],
      traffic: [
        { versionId: 'serving', percentage: 90 },
        { versionId: 'rotated', percentage: 10 },
      ],
    })
    expect(plan({ gateway: cut }).gateway).toEqual({ kind: 'version', versionId: 'rotated', base: 'serving' })
  })
})

describe('the plan of secrets', () => {
  const gateway = serving(RELEASE.gateway, RELEASE.gateway.tag, { secrets: ['DATABASE_URL'] })

  it('never overwrites one, whatever is given', () => {
    const known = Object.fromEntries(SECRETS.map((name) => [name, 'environment' as const]))
    expect(plan({}, known).secrets).toEqual([])
  })

  it('replaces one that is rotated, in a version of its own', () => {
    const known: KnownSecrets = { ...KNOWN, KEY_PEPPERS: 'file' }
    const rotated = plan({}, known, ['ADMIN_TOKEN', 'DATABASE_URL', 'KEY_PEPPERS'])
    expect(rotated).toMatchObject({
      problems: [],
      secrets: ['DATABASE_URL', 'ADMIN_TOKEN', 'KEY_PEPPERS'],
      gateway: { kind: 'version', versionId: null, base: 'serving' },
    })
    expect(changed(rotated)).toEqual([
      'change secrets DATABASE_URL',
      'change secrets ADMIN_TOKEN',
      'change secrets KEY_PEPPERS',
      'change gateway headgate',
      'change smoke test /health/ready, tools, a wrong key, management API',
    ])
  })

  it('refuses a rotation without the value that it needs', () => {
    expect(plan({}, {}, ['ADMIN_TOKEN', 'DATABASE_URL', 'VAULT_KEYS']).problems).toEqual([
      'DATABASE_URL is not given, and its rotation needs the new value',
      'VAULT_KEYS is not given, and its rotation keeps the pairs that it has',
    ])
  })

  describe('after a rotation that was rolled back', () => {
    const database = {
      ...DEPLOYED.database,
      begunRotations: ['DATABASE_URL', 'SEARCH_API_KEY', 'VAULT_KEYS'],
    }
    const known: KnownSecrets = { ...WITH_TOKEN, DATABASE_URL: 'environment', VAULT_KEYS: 'environment' }
    const versions = [
      { id: 'rejected', tag: RELEASE.gateway.tag },
      { id: 'serving', tag: RELEASE.gateway.tag },
    ]
    const rolledBack = serving(RELEASE.gateway, RELEASE.gateway.tag, { versions })
    const problem = (name: string) =>
      `the rotation of ${name} was rolled back or cut, and the next version would inherit its value: give --rotate ${name}, with the old or a new value`

    it.each([RELEASE.gateway.tag, 'hg-before'])(
      'refuses to inherit a value, from a version with the tag %s',
      (tag) => {
        const gateway = { ...rolledBack, versions: versions.map((version) => ({ ...version, tag })) }
        expect(plan({ database, gateway }, known).problems).toEqual([
          problem('DATABASE_URL'),
          problem('VAULT_KEYS'),
        ])
        expect(plan({ database, gateway }, known, ['VAULT_KEYS']).problems).toEqual([problem('DATABASE_URL')])
      },
    )

    it('uploads each that is given again, in a version of its own', () => {
      expect(plan({ database, gateway: rolledBack }, known, ['VAULT_KEYS', 'DATABASE_URL'])).toMatchObject({
        problems: [],
        secrets: ['DATABASE_URL', 'VAULT_KEYS'],
        gateway: { kind: 'version', versionId: null, base: 'serving' },
      })
    })

    it('refuses while traffic is divided, and not when the newest version has all of it', () => {
      const share = (rejected: number) => [
        { versionId: 'rejected', percentage: rejected },
        { versionId: 'serving', percentage: 100 - rejected },
      ]
      const problems = (rejected: number) =>
        plan({ database, gateway: { ...rolledBack, traffic: share(rejected) } }, known).problems.length
      expect([0, 10, 99, 100].map(problems)).toEqual([2, 2, 2, 0])
    })
  })

  it('generates none that data depend on', () => {
    const { problems, secrets } = plan({ gateway }, KNOWN)
    expect(secrets).toEqual(['UPSTASH_REDIS_REST_TOKEN', 'ADMIN_TOKEN'])
    expect(problems).toEqual([
      'KEY_PEPPERS is not given, and the database has data that an earlier deployment sealed or digested: a new value would lose them',
      'VAULT_KEYS is not given, and the database has data that an earlier deployment sealed or digested: a new value would lose them',
    ])
  })

  it('names what is not given', () => {
    expect(plan(EMPTY, {}).problems).toEqual([
      'DATABASE_URL is not given',
      'UPSTASH_REDIS_REST_TOKEN is not given',
    ])
  })
})

describe('the plan of everything else', () => {
  it('makes a restore point before migrations of a database that has data', () => {
    const pending = [
      { name: '0007_add', removes: false },
      { name: '0008_drop', removes: true },
    ]
    const migrated = plan({ database: { ...DEPLOYED.database, pending } })
    expect(changed(migrated)).toEqual([
      'create restore point Neon branch before-0008_drop-<time>',
      'change migrations 2 of the schema',
    ])
    expect(lineOf(migrated, 'migrations')).toMatchObject({
      details: ['0007_add, 0008_drop (removes)'],
      irreversible: 'it removes what the running version may use',
    })
  })

  it('refuses a host of another Worker', () => {
    const { problems } = plan({ hosts: [{ hostname: 'gateway.example.com', service: 'shop' }] })
    expect(problems).toEqual(['gateway.example.com belongs to the Worker shop; wrangler would take it away'])
  })

  it('says when the test has no credential', () => {
    expect(lineOf(plan({}, KNOWN), 'smoke test')).toMatchObject({
      name: '/health/ready, tools, a wrong key',
      details: ['no call with rights: neither ADMIN_TOKEN nor SMOKE_TEST_KEY is given'],
    })
    const withKey = plan({}, { ...KNOWN, SMOKE_TEST_KEY: 'environment' })
    expect(lineOf(withKey, 'smoke test')).toMatchObject({
      name: '/health/ready, tools, a wrong key, list of models',
      details: [],
    })
  })

  it('sets triggers again that differ', () => {
    const triggers = { ...TRIGGERS, workersDev: true }
    expect(changed(plan({ gateway: serving(RELEASE.gateway, undefined, { triggers }) }))).toEqual([
      'change triggers gateway.example.com, 1 schedules',
    ])
  })
})
