import type { ScriptState, Triggers } from './cloudflare-api.ts'
import { planScript } from './plan-script.ts'
import {
  type AccountState,
  type DatabaseState,
  type DeploymentPlan,
  type KnownSecrets,
  type PlannedStep,
  plannedStep,
  type ScriptChange,
  STEP_NAMES,
} from './plan-types.ts'
import type { Release, ScriptRelease } from './release.ts'
import { isGenerated, isRequired, type SecretSource, UPLOADED_SECRETS } from './secrets.ts'
import type { DeploySettings } from './settings.ts'

/** Whether applying the plan would change anything. */
export const hasChanges = ({ steps }: DeploymentPlan): boolean =>
  steps.some(({ action }) => action !== 'same')

/**
 * Compares what is wanted with what was read. Pure: the same arguments give the same plan.
 *
 * @param rotations names of secrets that get another value
 */
export function planDeployment(
  settings: DeploySettings,
  release: Release,
  state: AccountState,
  known: KnownSecrets,
  rotations: readonly string[] = [],
): DeploymentPlan {
  const secrets = planSecrets(state, known, rotations)
  const tools = planScript('tools', release.tools, state.tools, [])
  const gateway = planScript('gateway', withRedis(release.gateway, state), state.gateway, secrets.uploaded)
  const restorePoint = restorePointOf(settings, state.database)
  const changesScript = [tools, gateway].some(({ change }) => change.kind !== 'none')
  return {
    tags: { tools: release.tools.tag, gateway: release.gateway.tag },
    steps: [
      ...servicesSteps(settings, state),
      ...migrationSteps(state.database, restorePoint),
      plannedStep('bucket', settings.bucket, state.bucket.exists ? 'same' : 'create'),
      toolsStep(tools, gateway.change),
      ...secrets.steps,
      gateway.step,
      triggersStep(release.gateway, state.gateway, gateway.change),
      smokeTestStep(settings, state, { ...known, ...generatedIn(secrets.rotated) }, changesScript),
    ].sort((left, right) => STEP_NAMES.indexOf(left.step) - STEP_NAMES.indexOf(right.step)),
    problems: [
      ...secrets.problems,
      ...unfinishedProblems(state, rotations),
      ...tools.problems,
      ...gateway.problems,
      ...hostProblems(release.gateway, state.hosts),
    ],
    secrets: secrets.uploaded,
    rotated: secrets.rotated,
    tools: tools.change,
    gateway: gateway.change,
    restorePoint,
  }
}

/** The address of Redis becomes a variable when its database is created. */
const withRedis = (release: ScriptRelease, { redis }: AccountState): ScriptRelease =>
  redis.exists
    ? release
    : { ...release, variables: { ...release.variables, UPSTASH_REDIS_REST_URL: 'of the database' } }

function servicesSteps(settings: DeploySettings, { database, redis }: AccountState): PlannedStep[] {
  const kept = 'it is never deleted'
  const created = (exists: boolean) => (exists ? 'same' : 'create')
  return [
    settings.database === 'environment'
      ? plannedStep('database', 'of DATABASE_URL', 'same')
      : plannedStep('database', `Neon ${settings.database.neon.project}`, created(database.exists), [], kept),
    settings.redis === 'environment'
      ? plannedStep('redis', 'of UPSTASH_REDIS_REST_URL', 'same')
      : plannedStep('redis', `Upstash ${settings.redis.upstash.database}`, created(redis.exists), [], kept),
  ].map((planned) => (planned.action === 'same' ? { ...planned, irreversible: null } : planned))
}

/** Only a database that has something to lose, and whose service can branch it. */
function restorePointOf(
  settings: DeploySettings,
  { exists, pending, hasProtectedData }: DatabaseState,
): string | null {
  if (settings.database === 'environment' || !exists || !hasProtectedData) return null
  const newest = pending.at(-1)
  return newest === undefined ? null : `before-${newest.name}`
}

function migrationSteps({ pending }: DatabaseState, restorePoint: string | null): PlannedStep[] {
  if (pending.length === 0) return [plannedStep('migrations', 'schema', 'same')]
  const names = pending.map(({ name, removes }) => (removes ? `${name} (removes)` : name))
  const shown = names.length > 4 ? [`${names[0]} … ${names.at(-1)}`] : [names.join(', ')]
  const isHarmful = pending.some(({ removes }) => removes)
  const reason = isHarmful
    ? 'it removes what the running version may use'
    : 'it adds; the running version works with it'
  const migrations = plannedStep('migrations', `${pending.length} of the schema`, 'change', shown, reason)
  return restorePoint === null
    ? [migrations]
    : [
        plannedStep(
          'restore point',
          `Neon branch ${restorePoint}-<time>`,
          'create',
          [],
          'it is never deleted',
        ),
        migrations,
      ]
}

/** The tools are taken back with the gateway only: neither is tested with another release of the other. */
function toolsStep(
  { step, change }: { step: PlannedStep; change: ScriptChange },
  gateway: ScriptChange,
): PlannedStep {
  const staysWithGateway = change.kind === 'version' && gateway.kind === 'deploy'
  return staysWithGateway
    ? { ...step, irreversible: 'it stays with the gateway, which cannot be rolled back' }
    : step
}

const generatedIn = (rotated: readonly string[]): KnownSecrets =>
  rotated.includes('ADMIN_TOKEN') ? { ADMIN_TOKEN: 'generated' } : {}

function planSecrets(state: AccountState, known: KnownSecrets, rotations: readonly string[]) {
  const present = new Set(state.gateway?.secrets)
  const steps: PlannedStep[] = []
  const problems: string[] = []
  const uploaded: string[] = []
  const rotated: string[] = []
  for (const name of UPLOADED_SECRETS) {
    const source = known[name]
    if (present.has(name) && rotations.includes(name)) {
      if (source === undefined && name !== 'ADMIN_TOKEN') problems.push(unknownValue(name))
      rotated.push(name)
      steps.push(plannedStep('secrets', name, 'change', [rotationText(name, source)]))
    } else if (present.has(name)) {
      steps.push(plannedStep('secrets', name, 'same', ['present, never overwritten']))
    } else if (source !== undefined) {
      uploaded.push(name)
      steps.push(plannedStep('secrets', name, 'create', [`from ${sourceText(source)}`]))
    } else if (isGenerated(name) && !(name !== 'ADMIN_TOKEN' && state.database.hasProtectedData)) {
      uploaded.push(name)
      steps.push(plannedStep('secrets', name, 'create', ['generated, kept in the file of secrets']))
    } else if (isRequired(name)) {
      problems.push(missingSecret(name))
    }
  }
  return { steps, problems, uploaded: [...uploaded, ...rotated], rotated }
}

function rotationText(name: string, source: SecretSource | undefined): string {
  const isGiven = !isGenerated(name) || source === 'environment'
  if (isGiven) return `replaced by that of ${sourceText(source ?? 'environment')}`
  return name === 'ADMIN_TOKEN'
    ? 'replaced by a generated one, kept in the file of secrets'
    : 'a generated pair is added, or the one that was added before is put first'
}

const unknownValue = (name: string): string =>
  isGenerated(name)
    ? `${name} is not given, and its rotation keeps the pairs that it has`
    : `${name} is not given, and its rotation needs the new value`

/** The rotations whose values the next version would inherit: those of the newest version, if it is not the one that serves. */
function unfinishedProblems(
  { gateway, database: { begunRotations } }: AccountState,
  rotations: readonly string[],
): string[] {
  if (gateway === null) return []
  const newest = gateway.versions[0]?.id
  if (gateway.traffic.some(({ versionId, percentage }) => versionId === newest && percentage === 100))
    return []
  return begunRotations
    .filter((name) => gateway.secrets.includes(name) && !rotations.includes(name))
    .map(
      (name) =>
        `the rotation of ${name} was rolled back or cut, and the next version would inherit its value: give --rotate ${name}, with the old or a new value`,
    )
}

const sourceText = (source: SecretSource): string =>
  ({ environment: 'the environment', file: 'the file of secrets', generated: 'the file of secrets' })[
    source as 'environment'
  ] ?? source

function missingSecret(name: string): string {
  return isGenerated(name)
    ? `${name} is not given, and the database has data that an earlier deployment sealed or digested: a new value would lose them`
    : `${name} is not given`
}

/** A plain deployment sets them itself; a version does not. */
function triggersStep(release: ScriptRelease, state: ScriptState | null, change: ScriptChange): PlannedStep {
  const { crons, hosts, workersDev } = release.triggers
  const shown = [...hosts, ...(workersDev ? ['workers.dev'] : []), `${crons.length} schedules`]
  if (state === null) return plannedStep('triggers', shown.join(', '), 'create')
  const isSame = canonical(release.triggers) === canonical(state.triggers)
  const reason = change.kind === 'deploy' ? null : 'set back by deploying the earlier settings'
  return isSame
    ? plannedStep('triggers', shown.join(', '), 'same')
    : plannedStep('triggers', shown.join(', '), 'change', [], reason)
}

const canonical = ({ crons, hosts, workersDev }: Triggers): string =>
  JSON.stringify([[...crons].sort(), [...hosts].sort(), workersDev])

/** A deployment that was cut after an upload has a version that serves and was not tested. */
function smokeTestStep(
  settings: DeploySettings,
  { gateway, tools, database: { tested } }: AccountState,
  known: KnownSecrets,
  changesScript: boolean,
): PlannedStep {
  const calls = ['/health/ready', 'tools', 'a wrong key']
  const knowsToken = known.ADMIN_TOKEN !== undefined || !gateway?.secrets.includes('ADMIN_TOKEN')
  if (knowsToken) calls.push('management API')
  if (known.SMOKE_TEST_KEY !== undefined) calls.push(...modelCalls(settings))
  const isWeak = !knowsToken && known.SMOKE_TEST_KEY === undefined
  const details = isWeak ? ['no call with rights: neither ADMIN_TOKEN nor SMOKE_TEST_KEY is given'] : []
  const isServing = (script: ScriptState | null, version: string | null) =>
    version !== null && script?.traffic[0]?.versionId === version
  const isTested = isServing(gateway, tested.gateway) && isServing(tools, tested.tools)
  return plannedStep('smoke test', calls.join(', '), changesScript || !isTested ? 'change' : 'same', details)
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
