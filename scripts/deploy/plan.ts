import type { DomainOwner, ScriptState, TrafficShare, Triggers } from './cloudflare-api.ts'
import type { ClassMigration, Release, ScriptRelease } from './release.ts'
import { isGenerated, isRequired, type SecretSource, UPLOADED_SECRETS } from './secrets.ts'
import type { DeploySettings } from './settings.ts'

/** A migration of the schema that the database does not have. */
export interface PendingMigration {
  name: string
  /** Whether it drops or renames something that the running version may use. */
  removes: boolean
}

export interface DatabaseState {
  /** False: it will be created. */
  exists: boolean
  pending: PendingMigration[]
  /** Whether it has keys of callers, which were made with a pepper. */
  hasKeys: boolean
  /** Version of the gateway that passed the smoke test last. */
  testedVersion: string | null
}

/** What was read, without any value of a secret. */
export interface AccountState {
  accountName: string
  database: DatabaseState
  redis: { exists: boolean }
  bucket: { exists: boolean }
  tools: ScriptState | null
  gateway: ScriptState | null
  /** Custom domains of the account, with the Worker that has each. */
  hosts: DomainOwner[]
}

/** Names of the secrets whose values are known, with where each comes from. */
export type KnownSecrets = Readonly<Record<string, SecretSource>>

/** The steps in the order in which they are applied. */
export const STEP_NAMES = [
  'database',
  'redis',
  'restore point',
  'migrations',
  'bucket',
  'tools',
  'secrets',
  'gateway',
  'triggers',
  'smoke test',
] as const
export type StepName = (typeof STEP_NAMES)[number]

export interface PlannedStep {
  step: StepName
  /** Of the thing that it concerns. */
  name: string
  action: 'create' | 'change' | 'same'
  details: string[]
  /** Why a failed test does not undo it; null if it does, or if there is nothing to undo. */
  irreversible: string | null
}

/** How a script gets to its new version. */
export type ScriptChange =
  | { kind: 'none' }
  /** A plain deployment: of a new script, or with other classes. It takes all traffic at once. */
  | { kind: 'deploy'; isNew: boolean; base: string | null }
  /** A version beside the one that serves. `versionId`: one with the tag that an earlier run has uploaded. */
  | { kind: 'version'; versionId: string | null; base: string }

export interface DeploymentPlan {
  steps: PlannedStep[]
  /** Reasons for which it cannot be applied. */
  problems: string[]
  /** Secrets that the upload of the gateway carries. */
  secrets: string[]
  tools: ScriptChange
  gateway: ScriptChange
  /** Branch of Neon to return to; null: none is made. */
  restorePoint: string | null
}

/** Whether applying the plan would change anything. */
export const hasChanges = ({ steps }: DeploymentPlan): boolean =>
  steps.some(({ action }) => action !== 'same')

/** Compares what is wanted with what was read. Pure: the same arguments give the same plan. */
export function planDeployment(
  settings: DeploySettings,
  release: Release,
  state: AccountState,
  known: KnownSecrets,
): DeploymentPlan {
  const secrets = planSecrets(state, known)
  const tools = planScript('tools', release.tools, state.tools, [])
  const gateway = planScript('gateway', release.gateway, state.gateway, secrets.uploaded)
  const restorePoint = restorePointOf(settings, state.database)
  const changesScript = gateway.change.kind !== 'none'
  return {
    steps: [
      ...servicesSteps(settings, state),
      ...migrationSteps(state.database, restorePoint),
      step('bucket', settings.bucket, state.bucket.exists ? 'same' : 'create'),
      tools.step,
      ...secrets.steps,
      gateway.step,
      triggersStep(release.gateway, state.gateway, gateway.change),
      smokeTestStep(settings, state, known, changesScript),
    ].sort((left, right) => STEP_NAMES.indexOf(left.step) - STEP_NAMES.indexOf(right.step)),
    problems: [
      ...secrets.problems,
      ...tools.problems,
      ...gateway.problems,
      ...hostProblems(release.gateway, state.hosts),
    ],
    secrets: secrets.uploaded,
    tools: tools.change,
    gateway: gateway.change,
    restorePoint,
  }
}

const step = (
  name: StepName,
  subject: string,
  action: PlannedStep['action'],
  details: string[] = [],
  irreversible: string | null = null,
): PlannedStep => ({ step: name, name: subject, action, details, irreversible })

function servicesSteps(settings: DeploySettings, { database, redis }: AccountState): PlannedStep[] {
  const kept = 'it is never deleted'
  const created = (exists: boolean) => (exists ? 'same' : 'create')
  return [
    settings.database === 'environment'
      ? step('database', 'of DATABASE_URL', 'same')
      : step('database', `Neon ${settings.database.neon.project}`, created(database.exists), [], kept),
    settings.redis === 'environment'
      ? step('redis', 'of UPSTASH_REDIS_REST_URL', 'same')
      : step('redis', `Upstash ${settings.redis.upstash.database}`, created(redis.exists), [], kept),
  ].map((planned) => (planned.action === 'same' ? { ...planned, irreversible: null } : planned))
}

/** Only a database that has something to lose, and whose service can branch it. */
function restorePointOf(
  settings: DeploySettings,
  { exists, pending, hasKeys }: DatabaseState,
): string | null {
  if (settings.database === 'environment' || !exists || !hasKeys) return null
  const newest = pending.at(-1)
  return newest === undefined ? null : `before-${newest.name}`
}

function migrationSteps({ pending }: DatabaseState, restorePoint: string | null): PlannedStep[] {
  if (pending.length === 0) return [step('migrations', 'schema', 'same')]
  const names = pending.map(({ name, removes }) => (removes ? `${name} (removes)` : name))
  const shown = names.length > 4 ? [`${names[0]} … ${names.at(-1)}`] : [names.join(', ')]
  const isHarmful = pending.some(({ removes }) => removes)
  const reason = isHarmful
    ? 'it removes what the running version may use'
    : 'it adds; the running version works with it'
  const migrations = step('migrations', `${pending.length} of the schema`, 'change', shown, reason)
  return restorePoint === null
    ? [migrations]
    : [step('restore point', `Neon branch ${restorePoint}`, 'create', [], 'it is never deleted'), migrations]
}

function planSecrets(state: AccountState, known: KnownSecrets) {
  const present = new Set(state.gateway?.secrets)
  const steps: PlannedStep[] = []
  const problems: string[] = []
  const uploaded: string[] = []
  for (const name of UPLOADED_SECRETS) {
    const source = known[name]
    if (present.has(name)) {
      steps.push(step('secrets', name, 'same', ['present, never overwritten']))
    } else if (source !== undefined) {
      uploaded.push(name)
      steps.push(step('secrets', name, 'create', [`from ${sourceText(source)}`]))
    } else if (isGenerated(name) && !(name !== 'ADMIN_TOKEN' && state.database.hasKeys)) {
      uploaded.push(name)
      steps.push(step('secrets', name, 'create', ['generated, kept in the file of secrets']))
    } else if (isRequired(name)) {
      problems.push(missingSecret(name))
    }
  }
  return { steps, problems, uploaded }
}

const sourceText = (source: SecretSource): string =>
  ({ environment: 'the environment', file: 'the file of secrets', generated: 'the file of secrets' })[
    source as 'environment'
  ] ?? source

function missingSecret(name: string): string {
  return isGenerated(name)
    ? `${name} is not given, and the database has data that were made with it: a new value would lose them`
    : `${name} is not given`
}

/** How a script changes, its line in the plan, and what speaks against it. */
function planScript(
  name: 'tools' | 'gateway',
  release: ScriptRelease,
  state: ScriptState | null,
  secrets: string[],
) {
  const line = (action: PlannedStep['action'], lines: string[], irreversible: string | null = null) =>
    step(name, release.name, action, lines, irreversible)
  const details = [`code ${shortTag(servingTag(state))} → ${shortTag(release.tag)}`]
  if (state === null) {
    const classes = release.classMigrations.flatMap(({ changes }) => changes)
    const change: ScriptChange = { kind: 'deploy', isNew: true, base: null }
    const lines = [`code ${shortTag(release.tag)}`, `classes: ${classes.join(' ')}`]
    return {
      change,
      problems: [],
      step: line('create', lines, 'there is no version before it'),
    }
  }
  const pending = pendingClasses(release.classMigrations, state.migrationTag)
  if (pending === null) {
    const problem = `${release.name} has the class migration ${state.migrationTag}, which this release does not know: a newer release was deployed, and classes cannot be rolled back`
    return {
      change: { kind: 'none' } as ScriptChange,
      problems: [problem],
      step: line('same', []),
    }
  }
  const change = scriptChange(release, state, secrets, pending.length > 0)
  if (change.kind === 'none') return { change, problems: [], step: line('same', [shortTag(release.tag)]) }
  details.push(...differences('variables', state.variables, release.variables))
  details.push(...differences('bindings', state.bindings, release.bindings))
  if (pending.length > 0) details.push(`classes: ${pending.flatMap(({ changes }) => changes).join(' ')}`)
  if (change.kind === 'version' && change.versionId !== null) details.push('uploaded by an earlier run')
  const reason = pending.length > 0 ? 'Cloudflare does not roll back past a change of classes' : null
  return { change, problems: [], step: line('change', details, reason) }
}

/** Class migrations that the script lacks; null if it has one that the release does not know. */
function pendingClasses(migrations: ClassMigration[], tag: string | null): ClassMigration[] | null {
  const index = migrations.findIndex((migration) => migration.tag === tag)
  return tag !== null && index < 0 ? null : migrations.slice(index + 1)
}

function scriptChange(
  { tag }: ScriptRelease,
  { versions, traffic }: ScriptState,
  secrets: string[],
  changesClasses: boolean,
): ScriptChange {
  const tagged = new Set(versions.filter((version) => version.tag === tag).map(({ id }) => id))
  const newest = versions[0]
  const others = traffic.filter(({ versionId }) => !tagged.has(versionId))
  const base = mostTraffic(others) ?? mostTraffic(traffic)
  if (base === null || changesClasses) return { kind: 'deploy', isNew: false, base }
  if (others.length === 0 && secrets.length === 0) return { kind: 'none' }
  // A version carries secrets: only the newest one is known to have those that the next one would inherit.
  const uploaded = newest !== undefined && newest.tag === tag && secrets.length === 0 ? newest.id : null
  return { kind: 'version', versionId: uploaded, base }
}

const mostTraffic = ([first, ...rest]: TrafficShare[]): string | null =>
  first === undefined
    ? null
    : rest.reduce((most, share) => (share.percentage > most.percentage ? share : most), first).versionId

function servingTag(state: ScriptState | null): string | null {
  const serving = state?.traffic[0]?.versionId
  return state?.versions.find(({ id }) => id === serving)?.tag ?? null
}

const shortTag = (tag: string | null): string =>
  tag === null ? 'unknown' : tag.replace(/^hg-/, '').slice(0, 7)

/** Names only: a person may have put a credential into a variable. */
function differences(label: string, before: Record<string, string>, after: Record<string, string>): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort()
  const changed = names.flatMap((name) => {
    if (!(name in before)) return [`+${name}`]
    if (!(name in after)) return [`-${name}`]
    return before[name] === after[name] ? [] : [`~${name}`]
  })
  return changed.length === 0 ? [] : [`${label}: ${changed.join(' ')}`]
}

/** A plain deployment sets them itself; a version does not. */
function triggersStep(release: ScriptRelease, state: ScriptState | null, change: ScriptChange): PlannedStep {
  const { crons, hosts, workersDev } = release.triggers
  const shown = [...hosts, ...(workersDev ? ['workers.dev'] : []), `${crons.length} schedules`]
  if (state === null) return step('triggers', shown.join(', '), 'create')
  const isSame = canonical(release.triggers) === canonical(state.triggers)
  const reason = change.kind === 'deploy' ? null : 'set back by deploying the earlier settings'
  return isSame
    ? step('triggers', shown.join(', '), 'same')
    : step('triggers', shown.join(', '), 'change', [], reason)
}

const canonical = ({ crons, hosts, workersDev }: Triggers): string =>
  JSON.stringify([[...crons].sort(), [...hosts].sort(), workersDev])

/** A deployment that was cut after the upload has a version that serves and was not tested. */
function smokeTestStep(
  settings: DeploySettings,
  { gateway, database }: AccountState,
  known: KnownSecrets,
  changesScript: boolean,
): PlannedStep {
  const calls = ['/health', 'a wrong key']
  const knowsToken = known.ADMIN_TOKEN !== undefined || !gateway?.secrets.includes('ADMIN_TOKEN')
  if (knowsToken) calls.push('management API')
  if (known.SMOKE_TEST_KEY !== undefined) calls.push(...modelCalls(settings))
  const isWeak = !knowsToken && known.SMOKE_TEST_KEY === undefined
  const details = isWeak ? ['no call with rights: neither ADMIN_TOKEN nor SMOKE_TEST_KEY is given'] : []
  const isTested = gateway !== null && gateway.traffic[0]?.versionId === database.testedVersion
  return step('smoke test', calls.join(', '), changesScript || !isTested ? 'change' : 'same', details)
}

const modelCalls = ({ smokeTest }: DeploySettings): string[] =>
  smokeTest.model === undefined ? ['list of models'] : [`call of ${smokeTest.model}`, 'its audit record']

function hostProblems(release: ScriptRelease, hosts: AccountState['hosts']): string[] {
  return hosts
    .filter(({ hostname, service }) => release.triggers.hosts.includes(hostname) && service !== release.name)
    .map(
      ({ hostname, service }) => `${hostname} belongs to the Worker ${service}; wrangler would take it away`,
    )
}
