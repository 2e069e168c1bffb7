import type { ScriptState, TrafficShare } from './cloudflare-api.ts'
import { type PlannedStep, plannedStep, type ScriptChange } from './plan-types.ts'
import type { ClassMigration, ScriptRelease } from './release.ts'

/** How a script changes, its line in the plan, and what speaks against it. */
export function planScript(
  name: 'tools' | 'gateway',
  release: ScriptRelease,
  state: ScriptState | null,
  secrets: string[],
) {
  const line = (action: PlannedStep['action'], lines: string[], irreversible: string | null = null) =>
    plannedStep(name, release.name, action, lines, irreversible)
  const details = [`code ${shortTag(servingTag(state))} → ${shortTag(release.tag)}`]
  if (state === null) {
    const classes = release.classMigrations.flatMap(({ changes }) => changes)
    const change: ScriptChange = { kind: 'deploy', isNew: true, base: null }
    const lines = [
      `code ${shortTag(release.tag)}`,
      ...differences('variables', {}, release.variables),
      `classes: ${classes.join(' ')}`,
    ]
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
  // Versions of one tag differ in their secrets: a rotation that was cut has divided the traffic between them.
  const before = others.length > 0 ? others : traffic.filter(({ versionId }) => versionId !== newest?.id)
  const base = mostTraffic(before) ?? mostTraffic(traffic)
  if (base === null || changesClasses) return { kind: 'deploy', isNew: false, base }
  if (others.length === 0 && traffic.length === 1 && secrets.length === 0) return { kind: 'none' }
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
