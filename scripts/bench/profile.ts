import { existsSync, readFileSync } from 'node:fs'
import { type SourceMap, SourceMap as SourceMapReader } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { Inspector } from './inspector.ts'
import { median } from './statistics.ts'

/** A CPU profile as the inspector protocol writes it (`Profiler.stop`). */
export interface CpuProfile {
  nodes: Array<{
    id: number
    callFrame: { functionName: string; url: string; lineNumber: number; columnNumber: number }
    children?: number[]
  }>
  startTime: number
  endTime: number
  samples?: number[]
  /** Microseconds before each sample. */
  timeDeltas?: number[]
}

const ROOT = join(import.meta.dirname, '../..')
const SAMPLING_INTERVAL_MICROSECONDS = 200

/**
 * Records a CPU profile of a workerd that was started with an inspector port, while `work` runs.
 *
 * @throws StartError when the inspector does not answer
 */
export async function recordProfile(inspectorPort: number, work: () => Promise<void>): Promise<CpuProfile> {
  const inspector = await Inspector.open(inspectorPort)
  try {
    await inspector.call('Profiler.enable')
    await inspector.call('Profiler.setSamplingInterval', { interval: SAMPLING_INTERVAL_MICROSECONDS })
    await inspector.call('Profiler.start')
    await work()
    const { profile } = (await inspector.call('Profiler.stop')) as { profile: CpuProfile }
    return profile
  } finally {
    inspector.close()
  }
}

/** Time of one function, or of one group of functions. */
export interface ProfileRow {
  /** Folder of ours, a package's name, or `runtime`: what has no source, natives that functions of ours call among it. */
  group: string
  name: string
  /** `path:line` of our source, or the package; empty for the runtime's own. */
  place: string
  /** Microseconds in the function itself, and in it with all it called. */
  self: number
  total: number
}

export interface ProfileSummary {
  /** Microseconds that were not idle. */
  busy: number
  functions: ProfileRow[]
  groups: Array<{ group: string; self: number }>
}

/**
 * Sums a profile up by function, and by our module, package or runtime, most self time first.
 *
 * @param bundle path of the bundle that ran, whose source map lies beside it
 */
export function summarize(profile: CpuProfile, bundle: string): ProfileSummary {
  const map = new SourceMapReader(JSON.parse(readFileSync(`${bundle}.map`, 'utf8')))
  const self = selfTimes(profile)
  const byId = new Map(profile.nodes.map((node) => [node.id, node]))
  const parents = new Map(profile.nodes.flatMap((node) => (node.children ?? []).map((id) => [id, node.id])))
  const rows = new Map<string, ProfileRow>()
  const rowOf = new Map<number, ProfileRow>()
  for (const node of profile.nodes) {
    const place = placeOf(node.callFrame, map, dirname(bundle))
    const key = `${place.group} ${place.name} ${place.place}`
    const row = rows.get(key) ?? { ...place, self: 0, total: 0 }
    rows.set(key, row)
    rowOf.set(node.id, row)
  }
  let busy = 0
  for (const [id, time] of self) {
    const name = byId.get(id)?.callFrame.functionName
    if (name === '(idle)') continue
    busy += time
    const row = rowOf.get(id)
    if (row) row.self += time
    const counted = new Set<ProfileRow>()
    for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
      const ancestor = rowOf.get(at)
      // A function that called itself is counted once.
      if (ancestor && !counted.has(ancestor)) ancestor.total += time
      if (ancestor) counted.add(ancestor)
    }
  }
  const functions = [...rows.values()]
    .filter(({ name }) => name !== '(idle)' && name !== '(root)')
    .sort((one, other) => other.self - one.self)
  return { busy, functions, groups: groupsOf(functions) }
}

/**
 * Samples by node, each worth the usual distance between two. The times the profile gives are of no use here: workerd
 * takes no samples while it waits, so that what came before a pause would be charged with it.
 */
function selfTimes({ samples = [], timeDeltas = [] }: CpuProfile): Map<number, number> {
  const interval = median(timeDeltas)
  const times = new Map<number, number>()
  for (const id of samples) times.set(id, (times.get(id) ?? 0) + interval)
  return times
}

function groupsOf(functions: ProfileRow[]): ProfileSummary['groups'] {
  const sums = new Map<string, number>()
  for (const { group, self } of functions) sums.set(group, (sums.get(group) ?? 0) + self)
  return [...sums].map(([group, self]) => ({ group, self })).sort((one, other) => other.self - one.self)
}

function placeOf(
  frame: CpuProfile['nodes'][number]['callFrame'],
  map: SourceMap,
  directory: string,
): Pick<ProfileRow, 'group' | 'name' | 'place'> {
  const name = frame.functionName || '(anonymous)'
  const ofRuntime = { group: 'runtime', name, place: '' }
  if (frame.url === '' || frame.lineNumber < 0 || frame.url.startsWith('node')) return ofRuntime
  const entry = map.findEntry(frame.lineNumber, frame.columnNumber)
  if (!('originalSource' in entry)) return { ...ofRuntime, group: 'bundler' }
  const line = entry.originalLine + 1
  const [, library] = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(entry.originalSource) ?? []
  if (library !== undefined) {
    const path = entry.originalSource.replace(/^.*node_modules\//, '')
    // Some packages' own source maps name files without the package.
    const known = existsSync(join(ROOT, 'node_modules', library))
    return { group: known ? library : 'other packages', name, place: `${path}:${line}` }
  }
  const path = relative(ROOT, resolve(directory, entry.originalSource))
  return { group: dirname(path), name, place: `${path}:${line}` }
}
