import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import * as z from 'zod'
import { configurationSchema } from '../../src/env.ts'
import { type ChainHead, GENESIS } from '../../src/ledger/records/chain.ts'
import { type Attested, verifyAttested } from '../../src/ledger/records/checkpoint.ts'
import { importedRecord } from '../../src/ledger/records/exported-rows.store.ts'
import { expectedHeads, findUnknown, verifyHead } from '../../src/ledger/records/ledger-heads.ts'
import { type RemovedBefore, verifyRecord } from '../../src/ledger/records/verify.ts'
import type { KeyRing } from '../../src/lib/crypto.ts'
import { chainSection, type Fault, Found, faultsSection, headsSection, verdictOf } from './audit-report.ts'
import type { Call, Outcome } from './command.ts'
import { AdminError } from './errors.ts'

const head = z.object({ sequence: z.int(), hash: z.string() })
const row = z.record(z.string(), z.unknown())
const statedRow = z.object({
  table: z.enum(['audit_checkpoints', 'rejected_calls']),
  name: z.string(),
  value: z.string(),
})
const prunedRows = z.object({
  records: z.array(z.object({ shard: z.int(), ...head.shape, before: z.iso.datetime() })),
  usage_before: z.iso.datetime().nullable(),
  rejected_calls_before: z.iso.datetime().nullable(),
})
const attested = { pepper_id: z.string(), mac: z.string() }

const LINE = z.discriminatedUnion('type', [
  z.object({ type: z.literal('export'), version: z.literal(1) }),
  z.object({
    type: z.literal('checkpoint'),
    ...attested,
    statement: z.looseObject({
      organizationId: z.string(),
      checkpointId: z.string(),
      heads: z.array(z.looseObject({ shard: z.int(), ...head.shape })),
      fault: z.object({ reason: z.string(), detail: z.string() }).nullable(),
    }),
  }),
  z.object({
    type: z.literal('heads'),
    ...attested,
    statement: z.looseObject({
      organizationId: z.string(),
      chains: z.array(z.object({ shard: z.int(), head, flushed: head, pending: head.nullable() })),
      stored: z.array(z.looseObject({ shard: z.int(), first: z.int(), sequence: z.int() })),
      // Exports of earlier versions have none.
      pruned: prunedRows.optional(),
    }),
  }),
  z.object({
    type: z.literal('record'),
    record: row,
    // Exports of earlier versions have none.
    call: row.nullish(),
    usage: row.nullable(),
    credits: z.array(row),
    stated: z.array(statedRow).default([]),
  }),
  z.object({ type: z.literal('unrecorded'), table: z.string(), name: z.string() }),
  z.object({ type: z.literal('end'), lines: z.int() }),
])

type Line = z.infer<typeof LINE>
type LineOf<Type extends Line['type']> = Extract<Line, { type: Type }>

/**
 * Verifies an export line by line, without a gateway: chains, usage and credits against the records, the records against
 * the heads of the ledger and of the checkpoints, and their MACs where `KEY_PEPPERS` is given.
 */
export async function verifyExport({ environment }: Call, path: string): Promise<Outcome> {
  const verification = new ExportVerification(peppersOf(environment.KEY_PEPPERS))
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })
  try {
    for await (const line of lines) verification.read(line)
  } catch (error) {
    throw new AdminError(
      `${path} cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'no reason given'}`,
    )
  }
  return verification.outcome()
}

function peppersOf(text: string | undefined): KeyRing | null {
  if (!text) return null
  const parsed = configurationSchema.shape.KEY_PEPPERS.safeParse(text)
  if (!parsed.success) throw new AdminError('KEY_PEPPERS is not what the gateway has: id:base64 pairs')
  return parsed.data
}

const NO_PEPPERS =
  'note    MACs of heads and checkpoints: not verified, which takes the KEY_PEPPERS of the gateway'

/** A record that has to be in the export, or may only be there with this hash. */
interface Expected extends ChainHead {
  isPending: boolean
  /** What names it. */
  source: string
}

interface ReadChain {
  head: ChainHead
  first: number
  verified: number
  found: Found<Fault>
}

/** What has been read of an export. Holds the heads of its checkpoints, and no record. */
class ExportVerification {
  readonly #peppers: KeyRing | null
  readonly #organizations = new Set<string>()
  readonly #chains = new Map<number, ReadChain>()
  readonly #expected = new Map<string, Expected[]>()
  readonly #file = new Found<string>()
  readonly #unrecorded = new Found<string>()
  readonly #checkpoints = new Found<string>()
  #heads: LineOf<'heads'>['statement'] | null = null
  #checkpointCount = 0
  #lines = 0
  #isEnded = false

  /** @param peppers null: MACs are not verified. */
  constructor(peppers: KeyRing | null) {
    this.#peppers = peppers
  }

  read(text: string): void {
    // `npm run` writes lines of its own before the output of a script.
    if (this.#lines === 0 && (text === '' || text.startsWith('> '))) return
    const line = parseLine(text)
    if (line === null || this.#isEnded || (this.#lines === 0) !== (line.type === 'export')) {
      this.#file.add([`line ${this.#lines + 1} is not a line of an export`])
    } else this.#readLine(line)
    this.#lines += 1
  }

  #readLine(line: Line): void {
    if (line.type === 'checkpoint') this.#readCheckpoint(line)
    if (line.type === 'heads') this.#readHeads(line)
    if (line.type === 'record') this.#readRecord(line)
    if (line.type === 'unrecorded')
      this.#unrecorded.add([`${line.table} (unrecorded: no record of ${line.name})`])
    if (line.type !== 'end') return
    this.#isEnded = true
    if (line.lines !== this.#lines) this.#file.add([`it should have ${line.lines} lines before its end`])
  }

  #readCheckpoint(line: LineOf<'checkpoint'>): void {
    const { organizationId, checkpointId, heads, fault } = line.statement
    this.#organizations.add(organizationId)
    this.#checkpointCount += 1
    const broken = this.#verifyMac(line) ?? fault
    if (broken) this.#checkpoints.add([`checkpoint ${checkpointId} (${broken.reason}: ${broken.detail})`])
    else
      for (const each of heads)
        this.#expect({ ...each, isPending: false, source: `checkpoint ${checkpointId}` })
  }

  #readHeads(line: LineOf<'heads'>): void {
    const { organizationId, chains } = line.statement
    this.#organizations.add(organizationId)
    const broken = this.#verifyMac(line)
    if (broken) this.#file.add([`heads of the ledger (${broken.reason}: ${broken.detail})`])
    if (this.#heads) this.#file.add(['it has the heads of the ledger twice'])
    this.#heads = line.statement
    for (const each of expectedHeads(chains)) this.#expect({ ...each, source: 'the ledger' })
  }

  #verifyMac({ statement, pepper_id: pepperId, mac }: LineOf<'heads' | 'checkpoint'>) {
    const signed: Attested<unknown> = { statement, pepperId, mac }
    return this.#peppers && verifyAttested(this.#peppers, signed)
  }

  #expect({ shard, sequence, hash, isPending, source }: Expected & { shard: number }): void {
    const place = `${shard}:${sequence}`
    const known = this.#expected.get(place) ?? []
    if (known.some((each) => each.hash === hash && each.isPending === isPending)) return
    this.#expected.set(place, [...known, { sequence, hash, isPending, source }])
  }

  #readRecord(line: LineOf<'record'>): void {
    const entry = importedRecord(line)
    const { organizationId, shard, sequence, hash } = entry.record
    this.#organizations.add(organizationId)
    const chain = this.#chainOf(shard, sequence)
    const faults: Fault[] = verifyRecord(entry, chain.head, this.#removedBefore(shard))
    faults.push(...this.#differences(shard, sequence, hash))
    chain.found.add(faults)
    if (chain.found.first === null) chain.verified = sequence
    chain.head = { sequence, hash }
  }

  #chainOf(shard: number, first: number): ReadChain {
    const head = this.#prunedOf(shard) ?? GENESIS
    const chain = this.#chains.get(shard) ?? { head, first, verified: 0, found: new Found<Fault>() }
    this.#chains.set(shard, chain)
    return chain
  }

  /** The last record of a chain that retention may have removed. The statement about it is that of the heads, under the same MAC. */
  #prunedOf(shard: number) {
    return this.#heads?.pruned?.records.find((each) => each.shard === shard)
  }

  #removedBefore(shard: number): RemovedBefore {
    const { usage_before: usage, rejected_calls_before: rejected } = this.#heads?.pruned ?? {}
    const calls = this.#prunedOf(shard)?.before
    const date = (text: string | null | undefined) => (text ? new Date(text) : null)
    return { calls: date(calls), usage: date(usage), rejectedCalls: date(rejected) }
  }

  /** Compares a record with the heads that name it; null for one that the export does not have. */
  #differences(shard: number, sequence: number, hash: string | null): Fault[] {
    const place = `${shard}:${sequence}`
    const expected = this.#expected.get(place) ?? []
    this.#expected.delete(place)
    return expected.flatMap((each) => {
      const fault = verifyHead({ shard, ...each }, hash)
      if (!fault) return []
      const detail = `${each.source} names ${hash === null ? 'it, and it is missing' : 'another record'}`
      return [{ sequence, reason: fault.reason, detail }]
    })
  }

  outcome(): Outcome {
    this.#checkEnd()
    const organization = this.#heads?.organizationId ?? '(unknown)'
    const chains = [...this.#chains].map(([shard, { verified, found }]) => ({
      organization_id: organization,
      organization,
      shard,
      pruned_to: this.#prunedOf(shard)?.sequence ?? 0,
      verified,
      first_broken: found.first,
      faults: found.faults,
      more_faults: found.more,
    }))
    const heads = this.#unknown()
    const [file, unrecorded, checkpoints] = [this.#file, this.#unrecorded, this.#checkpoints]
    const count = `checkpoints: ${this.#checkpointCount === 0 ? 'none' : this.#checkpointCount}`
    const sections = [
      faultsSection('the file', file, (text) => `the file: ${text}`, null),
      ...chains.map(chainSection),
      headsSection(organization, heads),
      faultsSection('usage and credits', unrecorded, String, 'usage and credits: every row has its record'),
      faultsSection('checkpoints', checkpoints, String, count),
    ]
    const { line, exitCode } = verdictOf(sections)
    const lines = [
      ...sections.flatMap((section) => section.lines),
      ...(this.#peppers ? [] : [NO_PEPPERS]),
      line,
    ]
    const macs = this.#peppers !== null
    const item = { ok: exitCode === 0, macs_verified: macs, chains, heads, file, unrecorded, checkpoints }
    return { kind: 'report', lines, item, exitCode }
  }

  /** Finds what is missing in the whole. */
  #checkEnd(): void {
    if (!this.#isEnded) this.#file.add(['it has no end: it was cut off'])
    if (!this.#heads) this.#file.add(['it has no heads of the ledger'])
    if (this.#organizations.size > 1) this.#file.add(['it has parts of more than one organization'])
    for (const place of [...this.#expected.keys()]) {
      const [shard, sequence] = place.split(':').map(Number) as [number, number]
      const pruned = this.#prunedOf(shard)
      if (pruned && sequence < pruned.sequence) continue
      if (pruned?.sequence === sequence) {
        this.#chainOf(shard, sequence).found.add(this.#differences(shard, sequence, pruned.hash))
        continue
      }
      this.#chainOf(shard, sequence).found.add(this.#differences(shard, sequence, null))
    }
  }

  /** Chains and records that the ledger did not have, whether they are in the file or were seen by the gateway. */
  #unknown() {
    if (!this.#heads) return []
    const { stored, chains } = this.#heads
    const read = [...this.#chains].map(([shard, { first, head }]) => ({
      shard,
      first,
      sequence: head.sequence,
    }))
    const shards = new Set([...stored, ...read].map(({ shard }) => shard))
    const seen = [...shards].map((shard) => {
      const parts = [...stored, ...read].filter((each) => each.shard === shard)
      const first = Math.min(...parts.map((each) => each.first))
      return { shard, first, sequence: Math.max(...parts.map(({ sequence }) => sequence)) }
    })
    return findUnknown(seen, chains)
  }
}

function parseLine(text: string): Line | null {
  try {
    return LINE.safeParse(JSON.parse(text)).data ?? null
  } catch {
    return null
  }
}
