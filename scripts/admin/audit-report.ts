import { counted } from '../../src/lib/counted.ts'

/** Faults that are reported of one part; the rest is counted. */
const MOST_FAULTS = 20

export interface Fault {
  sequence: number
  reason: string
  detail: string
}

export interface HeadFault extends Fault {
  shard: number
}

export interface VerifiedChain {
  organization_id: string
  organization: string
  shard: number
  /** The last record that retention has removed; 0 without one. */
  pruned_to: number
  /** The last record before the first fault. */
  verified: number
  first_broken: Fault | null
  faults: Fault[]
  /** How many faults are not in `faults`. */
  more_faults: number
}

/** What a part of the verification found, with its lines for a person. `unknown`: it could not be verified. */
export interface Section {
  lines: string[]
  result: 'intact' | 'broken' | 'unknown'
}

/** The first faults of a part, and the number of the others. */
export class Found<Kind> {
  readonly faults: Kind[] = []
  more = 0

  get first(): Kind | null {
    return this.faults[0] ?? null
  }

  add(faults: readonly Kind[]): void {
    const room = Math.max(0, MOST_FAULTS - this.faults.length)
    this.faults.push(...faults.slice(0, room))
    this.more += Math.max(0, faults.length - room)
  }
}

/** @param name of the part. @param line for its first faults. */
export function faultsSection<Kind>(
  name: string,
  { faults, more }: Pick<Found<Kind>, 'faults' | 'more'>,
  line: (fault: Kind) => string,
  intact: string | null,
): Section {
  if (faults.length === 0) return { lines: intact === null ? [] : [`ok      ${intact}`], result: 'intact' }
  const lines = faults.map((fault) => `BROKEN  ${line(fault)}`)
  if (more > 0) lines.push(`BROKEN  ${name}: ${counted(more, 'more fault')}`)
  return { lines, result: 'broken' }
}

export function chainSection(chain: VerifiedChain): Section {
  const { organization, shard, verified, first_broken: first, faults, more_faults: more } = chain
  const begin = chain.pruned_to + 1
  const pruned = chain.pruned_to === 0 ? '' : ` (retention has removed those before ${begin})`
  const range = verified < begin ? `no records${pruned}` : `records ${begin} to ${verified}${pruned}`
  const name = `${organization} shard ${shard}`
  const line = (fault: Fault) => {
    const { sequence, reason, detail } = fault
    return fault === first
      ? `${name}: ${range} intact; first broken record: ${sequence} (${reason}: ${detail})`
      : `${name}: record ${sequence} (${reason}: ${detail})`
  }
  return faultsSection(name, { faults, more }, line, `${name}: ${range}`)
}

export const headsSection = (organization: string, faults: HeadFault[]): Section =>
  faultsSection(
    organization,
    { faults, more: 0 },
    ({ shard, sequence, reason, detail }) =>
      `${organization} shard ${shard}: record ${sequence} (${reason}: ${detail})`,
    null,
  )

/** The verdict in the last line, and the exit code. */
export function verdictOf(sections: readonly Section[]): { line: string; exitCode: number } {
  if (sections.some(({ result }) => result === 'broken')) return { line: 'BROKEN', exitCode: 3 }
  if (sections.some(({ result }) => result === 'unknown')) return { line: 'NOT VERIFIED', exitCode: 1 }
  return { line: 'intact', exitCode: 0 }
}
