import { type ChangeScope, recordView } from '../ledger/changes/audited-change.ts'
import { type CallRow, callRowOf } from '../ledger/records/extracted-rows.ts'
import { parseBody } from '../ledger/records/record-body.ts'
import { HOME_SHARD } from '../ledger/shards/shards.ts'
import type { TailAnswer } from '../ledger/tail/tail.ts'
import { ApiError } from '../lib/api-error.ts'
import type { CallTailFilter } from '../wire/calls.ts'
import { selectGroupUsers } from './groups.store.ts'

/** A reader asks the ledger again after this time at the latest. */
const WAIT_MS = 5_000
/** The same where several shards are asked, which answer together. */
const WAIT_FOR_SHARDS_MS = 250
/** Time between two answers. */
const FRAME_MS = 250
/** Time after which the caller is asked for its rights again. */
const CHECK_MS = 30_000

/** A call that has not ended: what is known at its admission. */
export type OpenCallRow = Pick<
  CallRow,
  | 'id'
  | 'at'
  | 'requestId'
  | 'userId'
  | 'keyId'
  | 'surface'
  | 'action'
  | 'modelId'
  | 'tool'
  | 'responseId'
  | 'runId'
>

export interface TailFrame {
  /** Where to go on: the last commit that was read of each shard. */
  positions: ReadonlyMap<number, number>
  opened: OpenCallRow[]
  closed: CallRow[]
  /** Whether there were more calls than a frame holds. */
  skipped: boolean
}

/** Why a tail ends: its time is over, or the rights of its reader have changed. */
export type TailEnd = 'time' | 'rights'

interface Tail {
  /** Shards of the organization's ledger. */
  shards: number
  /** The user that reads; null for the administration token. */
  reader: string | null
  /** The user whose calls are in reach; null for all. */
  own: string | null
  filter: CallTailFilter
  /** Where to begin; with the calls that are open now for shards without one. */
  positions: ReadonlyMap<number, number>
  /** Time after which it ends. */
  seconds: number
  /** Whether the reader still has its rights. */
  isAllowed: () => Promise<boolean>
}

/**
 * Calls of an organization as they are admitted and end, at least one frame. Opening it is one view in the audit trail, unless all
 * calls in reach are the reader's own.
 * @throws ApiError `rate_limited` where the organization has many readers; what the ledger throws.
 */
export async function* tailCalls(scope: ChangeScope, tail: Tail): AsyncGenerator<TailFrame, TailEnd> {
  const { clock } = scope
  if (tail.own === null)
    await recordView(scope, { action: 'calls.tailed', resource: 'calls', detail: { filter: tail.filter } })
  const { group_id: groupId, ...filter } = tail.filter
  let members: ReadonlySet<string> | null = null
  const isShown = (row: OpenCallRow) =>
    isWanted(row, filter) && (members === null || (row.userId !== null && members.has(row.userId)))
  const tailId = crypto.randomUUID()
  const until = clock() + 1_000 * tail.seconds
  let positions = tail.positions
  let epoch: number | null = null
  let checkedAt = clock()
  for (;;) {
    const askedAt = clock()
    const answers = await askShards(scope, tail, tailId, positions)
    const [home] = answers
    // Read after the first epoch is known. A change of members raises it, which ends the tail: the next one reads them again.
    if (groupId !== undefined) members ??= await selectGroupUsers(scope, groupId)
    if (home?.epoch != null) {
      if (epoch !== null && home.epoch !== epoch) return 'rights'
      epoch = home.epoch
    }
    if (clock() - checkedAt >= CHECK_MS) {
      if (!(await tail.isAllowed())) return 'rights'
      checkedAt = clock()
    }
    positions = new Map(answers.map(({ after }, shard) => [shard, after]))
    yield frameOf(answers, positions, isShown)
    if (clock() >= until) return 'time'
    await pauseUntil(askedAt + FRAME_MS, clock)
  }
}

async function askShards(
  { ledgerOf, organizationId }: ChangeScope,
  { shards, reader, own }: Tail,
  tailId: string,
  positions: ReadonlyMap<number, number>,
): Promise<TailAnswer[]> {
  const waitMilliseconds = shards === 1 ? WAIT_MS : WAIT_FOR_SHARDS_MS
  const asked = Array.from({ length: shards }, (_, shard) => {
    const after = positions.get(shard) ?? null
    return ledgerOf(organizationId, shard).tail({ tailId, reader, after, userId: own, waitMilliseconds })
  })
  const answers = await Promise.all(asked)
  if (answers[HOME_SHARD] === null) {
    const message =
      'This organization, or its user, has many readers of live calls. Close one, or try again in a moment.'
    throw new ApiError('rate_limited', message, { retryAfterSeconds: 15 })
  }
  return answers.filter((answer) => answer !== null)
}

const pauseUntil = (instant: number, clock: () => number) =>
  new Promise<void>((resolve) => setTimeout(resolve, Math.max(0, instant - clock())))

function frameOf(
  answers: readonly TailAnswer[],
  positions: ReadonlyMap<number, number>,
  isShown: (row: OpenCallRow) => boolean,
): TailFrame {
  const opened = answers.flatMap(({ opened: texts }) => texts.map(openCallRow))
  const closed = answers.flatMap(({ closed: texts }) => texts.flatMap(closedCallRow))
  const byTime = (left: OpenCallRow, right: OpenCallRow) => left.at.getTime() - right.at.getTime()
  return {
    positions,
    opened: opened.filter(isShown).sort(byTime),
    closed: closed.filter(isShown).sort(byTime),
    skipped: answers.some(({ skipped }) => skipped),
  }
}

/** The text of a call's admission, as `openingText` has it. */
interface Opening {
  id: string
  at: number
  requestId: string
  actor: { userId: string | null; keyId: string | null }
  surface: string
  action: string
  modelId: string | null
  tool?: string
  responseId?: string
  runId?: string
}

function openCallRow(text: string): OpenCallRow {
  const { id, at, requestId, actor, surface, action, modelId, tool, responseId, runId }: Opening =
    JSON.parse(text)
  return {
    id,
    at: new Date(at),
    requestId,
    userId: actor.userId,
    keyId: actor.keyId,
    surface,
    action,
    modelId,
    tool: tool ?? null,
    responseId: responseId ?? null,
    runId: runId ?? null,
  }
}

function closedCallRow(text: string): CallRow[] {
  const body = parseBody(text)
  const row = body && callRowOf(body)
  return row ? [row] : []
}

type Value = string | number

const of =
  (column: keyof CallRow) =>
  (row: Partial<CallRow>, value: Value): boolean =>
    row[column] === value
const among =
  (column: 'flags' | 'detectors') =>
  (row: Partial<CallRow>, value: Value): boolean =>
    value === 'any' ? (row[column] ?? null) !== null : (row[column]?.includes(String(value)) ?? false)
const from = (column: 'cost' | 'durationMilliseconds') => (row: Partial<CallRow>, value: Value) =>
  row[column] !== undefined && row[column] >= Number(value)
const upTo = (column: 'cost' | 'durationMilliseconds') => (row: Partial<CallRow>, value: Value) =>
  row[column] !== undefined && row[column] <= Number(value)

/** Filters that a row decides by itself. */
type RowFilter = Omit<CallTailFilter, 'group_id'>

/** The same filters as those of a list, for a row. A call that has not ended does not fit what only its end shows. */
const FITS: Record<keyof RowFilter, (row: Partial<CallRow>, value: Value) => boolean> = {
  request_id: of('requestId'),
  response_id: of('responseId'),
  run_id: of('runId'),
  user_id: of('userId'),
  key_id: of('keyId'),
  model: of('modelId'),
  provider: of('provider'),
  surface: of('surface'),
  tool: of('tool'),
  connection_id: of('connectionId'),
  outcome: of('outcome'),
  status: of('status'),
  error: of('errorCode'),
  found: among('detectors'),
  flag: among('flags'),
  cost_min: from('cost'),
  cost_max: upTo('cost'),
  duration_min: from('durationMilliseconds'),
  duration_max: upTo('durationMilliseconds'),
}

const isWanted = (row: Partial<CallRow>, filter: RowFilter): boolean =>
  (Object.keys(FITS) as Array<keyof RowFilter>).every((name) => {
    const value = filter[name]
    return value === undefined || FITS[name](row, value)
  })
