import { ApiError } from '../../lib/api-error.ts'
import { earliest } from '../../lib/clock.ts'
import { logFailure } from '../../lib/log.ts'
import { compactConversation } from '../compaction/compact-conversation.ts'
import { UnflushedEvents } from '../log/unflushed-events.ts'
import { notStarted } from '../model/error-data.ts'
import { placeOf } from '../model/response-ids.ts'
import type {
  CompactionResult,
  ObjectRoom,
  Owner,
  RequestContent,
  ResponseMethods,
  StartRequest,
  StartResult,
} from '../model/types.ts'
import { DurableResponse } from '../object/durable-response.ts'
import { type AnyMethod, RESPONSE_METHODS } from '../object/methods.ts'
import type { ResponseDeps } from '../response-deps.ts'
import { CommitGroup } from '../storage/commit-group.ts'
import { CommitRows } from '../storage/commit-rows.ts'
import { KEYS_PER_RESPONSE } from '../storage/slice.ts'
import { Tables } from '../storage/tables.ts'
import { AlarmTimes, CHECK_INTERVAL_MS } from './alarm-times.ts'
import { PoolAlarm } from './pool-alarm.ts'
import { PoolRoom } from './pool-room.ts'
import { type PoolRow, PoolTable } from './pool-table.ts'
import { PooledResponse, type PoolParts } from './pooled-response.ts'
import { recoverCommits } from './recover-commits.ts'
import { slotEnd } from './slots.ts'

/** A tenth of what the platform allows. */
const MOST_STORED_BYTES = 1024 ** 3
/** Readers of all responses: each may hold 32 KB, and they share what is larger. */
const MOST_READERS = 512
/** Numbers for which keys are exact. */
const MOST_RESPONSES = Number.MAX_SAFE_INTEGER / KEYS_PER_RESPONSE / 2
/** Responses whose alarms run at a time. */
const TOGETHER = 64

/**
 * Up to 64 live responses of one organization in one Durable Object, and those that have ended until their windows close.
 * Each behaves as in an object of its own (`DurableResponse`); they share the storage, its alarm, and the ledger's client, and
 * store together what they have at one time (`storage/commit-group`). The
 * object takes responses for the ten minutes of its slot, and deletes its whole storage when all windows are closed.
 */
export class PooledResponses {
  readonly #deps: ResponseDeps
  readonly #table: PoolTable
  readonly #commits: CommitRows
  readonly #alarm: PoolAlarm
  readonly #times: AlarmTimes
  readonly #parts: PoolParts
  readonly #unflushed = new UnflushedEvents()
  readonly #room: PoolRoom
  /** Every response of the object, by its id. */
  readonly #responses = new Map<string, PooledResponse>()
  /** Those with an instance. */
  readonly #opened = new Set<PooledResponse>()
  #organizationId: string | null
  #nextNumber: number
  /** End of the object's slot, in milliseconds since the epoch; in the past where it is not known. */
  #slotEnd = 0

  constructor(storage: DurableObjectStorage, deps: ResponseDeps) {
    this.#deps = deps
    const tables = new Tables(storage.sql)
    this.#table = new PoolTable(storage, tables)
    this.#alarm = new PoolAlarm(storage)
    this.#times = new AlarmTimes(deps.clock, deps.configuration.RESPONSE_WINDOW_MS)
    this.#organizationId = this.#table.organizationId
    const rows = this.#table.rows()
    this.#commits = new CommitRows(storage, Math.max(0, ...rows.map(({ since }) => since)))
    this.#parts = {
      storage,
      tables,
      table: this.#table,
      commits: new CommitGroup(this.#commits, deps.clock),
      clock: deps.clock,
      organizationId: () => this.#organizationId ?? '',
      alarmBy: (time, isActive) => this.#alarm.setBy(isActive ? time : this.#times.rounded(time)),
      left: () => this.#awaitEnd(),
    }
    this.#room = new PoolRoom(deps.clock, this.#opened, {
      isFull: () => this.#nextNumber >= MOST_RESPONSES || storage.sql.databaseSize >= MOST_STORED_BYTES,
    })
    this.#nextNumber = this.#table.nextNumber
    this.#load(rows)
  }

  /**
   * Number of responses with an instance in memory.
   * @internal Tests count them.
   */
  get instances(): number {
    return this.#opened.size
  }

  /** Calls a method of a response. For other owners, and without such a response, each has the result for an absent one. */
  async call(method: keyof ResponseMethods, responseId: string, parameters: unknown[]): Promise<unknown> {
    if (method === 'start') return this.#start(responseId, ...(parameters as [StartRequest, RequestContent]))
    if (method === 'compact') return this.#compact(...(parameters as [StartRequest, RequestContent]))
    const [owner] = parameters as [Owner, ...unknown[]]
    if (method === 'reserve') return this.#reserve(responseId, owner, Number(parameters[1]))
    const isOwn = owner.organizationId === this.#organizationId
    const response = isOwn ? this.#responses.get(responseId) : undefined
    if (!response || response.isOver) return RESPONSE_METHODS[method].absent?.result
    if (method === 'follow' && this.#readers >= MOST_READERS) return 'busy'
    return this.#use(response, (instance) => (instance[method] as AnyMethod).call(instance, ...parameters))
  }

  /** Runs the alarms that are due, those of live responses together, and ends the object when nothing of it is left. */
  async alarm(): Promise<void> {
    this.#alarm.clear()
    const now = this.#deps.clock()
    const isDue = ({ isOpen, due }: PooledResponse) => isOpen || (due !== null && due <= now)
    const all = [...this.#responses.values()]
    const due = all.filter(isDue)
    // First, because the platform stops repeating an alarm that keeps failing.
    if (this.#table.exists)
      await this.#alarm.set(
        this.#times.next(
          all.filter((each) => !isDue(each)),
          all,
        ),
      )
    for (let at = 0; at < due.length; at += TOGETHER) {
      await Promise.all(due.slice(at, at + TOGETHER).map((response) => this.#runAlarm(response)))
    }
    this.#dropIdle()
    if (!(await this.#endIfOver())) await this.#setNextAlarm()
  }

  async #start(responseId: string, request: StartRequest, body: RequestContent): Promise<StartResult> {
    this.#claim(request.principal.organizationId)
    this.#dropIdle()
    const known = this.#responses.get(responseId)
    const isExpected = this.#room.isReserved(responseId, request) || (known !== undefined && !known.isClosed)
    if (!isExpected && !this.#room.has(bytesOf(request, body))) {
      const full = new ApiError('internal', 'The gateway is busy. Try again in a moment.', {
        retryAfterSeconds: 1,
      })
      return { ...notStarted(full, { recorded: false }, request.identity.requestId), room: 'none' }
    }
    const response = known && !known.isClosed ? known : this.#add(responseId)
    response.starts++
    try {
      const started = this.#use(response, (instance) => instance.start(request, body))
      const room: ObjectRoom = this.#room.isLittle ? 'little' : 'enough'
      return { ...(await started), room }
    } finally {
      response.starts--
    }
  }

  async #compact(request: StartRequest, body: RequestContent): Promise<CompactionResult> {
    this.#claim(request.principal.organizationId)
    return compactConversation(this.#deps, request, body)
  }

  #reserve(responseId: string, { organizationId }: Owner, bytes: number): boolean {
    this.#claim(organizationId)
    this.#dropIdle()
    return this.#room.reserve(responseId, bytes)
  }

  /** @throws for another organization than that of the first response. */
  #claim(organizationId: string): void {
    this.#organizationId ??= organizationId
    if (this.#organizationId !== organizationId)
      throw new Error('this object is that of another organization')
  }

  get #readers(): number {
    let readers = 0
    for (const { instance } of this.#opened) readers += instance?.readers ?? 0
    return readers
  }

  #add(responseId: string): PooledResponse {
    const now = this.#deps.clock()
    const slot = placeOf(responseId)?.slot
    if (slot !== undefined) this.#slotEnd = slotEnd(slot, now)
    const row = { number: this.#nextNumber++, id: responseId, open: true, due: null, closed: false, since: 0 }
    const response = new PooledResponse(this.#parts, row, false)
    this.#responses.set(responseId, response)
    return response
  }

  /** Opens the responses that a restart has interrupted. */
  #load(rows: readonly PoolRow[]): void {
    for (const row of rows) {
      const response = new PooledResponse(this.#parts, row, true)
      this.#responses.set(row.id, response)
      const slot = placeOf(row.id)?.slot
      if (slot !== undefined) this.#slotEnd = slotEnd(slot, this.#deps.clock())
    }
    const all = [...this.#responses.values()]
    this.#alarm.expect(earliest(all.map(({ due }) => due && this.#times.rounded(due))))
    const open = all.filter(({ isOpen }) => isOpen)
    recoverCommits(this.#parts.storage, this.#commits, open, this.#unflushed)
    for (const response of open) {
      try {
        this.#instanceOf(response)
      } catch (error) {
        // The others continue; its alarm tries again.
        logResponseFailure(response, error)
      }
    }
    if (open.length > 0) {
      this.#deps.waitUntil(this.#alarm.setBy(this.#deps.clock() + CHECK_INTERVAL_MS))
    }
  }

  /** The instance of a response. It is read from the storage if it is not in memory. */
  #instanceOf(response: PooledResponse): DurableResponse {
    if (response.instance) return response.instance
    const waitUntil = (work: Promise<unknown>) => {
      response.uses++
      const ended = () => {
        response.uses--
      }
      this.#deps.waitUntil(work.then(ended, ended))
    }
    const instance = new DurableResponse(response, this.#unflushed, { ...this.#deps, waitUntil })
    response.instance = instance
    this.#opened.add(response)
    return instance
  }

  async #use<Result>(
    response: PooledResponse,
    use: (instance: DurableResponse) => Promise<Result>,
  ): Promise<Result> {
    response.uses++
    try {
      return await use(this.#instanceOf(response))
    } finally {
      response.uses--
    }
  }

  async #runAlarm(response: PooledResponse): Promise<void> {
    try {
      if (response.isClosed) {
        await response.deleteAll()
        if (!response.instance) this.#responses.delete(response.id)
      } else await this.#use(response, (instance) => instance.alarm())
    } catch (error) {
      logResponseFailure(response, error)
    }
    const now = this.#deps.clock()
    // What is not complete is repeated, after a pause.
    if (response.due !== null && response.due <= now) response.postpone(now + CHECK_INTERVAL_MS)
  }

  /** Drops the instances of responses that have ended and that nothing uses, and the responses that are deleted. */
  #dropIdle(): void {
    for (const response of this.#opened) {
      const { instance, uses } = response
      if (!instance || uses > 0 || response.isLive || instance.readers > 0) continue
      // One that has ended, and whose calls the ledger has not confirmed: another instance would read an older state.
      if (this.#commits.isNeededBy(response.number)) continue
      response.instance = null
      this.#opened.delete(response)
      if (!response.isStored && this.#responses.get(response.id) === response) {
        this.#responses.delete(response.id)
      }
    }
  }

  /** Makes sure that an alarm follows after which the object may end. */
  async #awaitEnd(): Promise<void> {
    if (!this.#table.exists || this.#alarm.isSet) return
    await this.#alarm.set(Math.max(this.#slotEnd, this.#deps.clock()))
  }

  /** Deletes the storage when the slot is over and every window closed. @returns whether nothing is stored. */
  async #endIfOver(): Promise<boolean> {
    if (!this.#table.exists) return true
    const isLeft = (response: PooledResponse) => !response.isClosed || response.instance !== null
    if (this.#deps.clock() < this.#slotEnd || [...this.#responses.values()].some(isLeft)) return false
    this.#responses.clear()
    this.#alarm.clear()
    this.#commits.forget()
    await this.#table.deleteAll()
    return true
  }

  async #setNextAlarm(): Promise<void> {
    const all = [...this.#responses.values()]
    const isEnd = all.every(({ isClosed }) => isClosed)
    const end = Math.max(this.#slotEnd, this.#deps.clock() + CHECK_INTERVAL_MS)
    const next = this.#times.next(all, all)
    await this.#alarm.moveTo(isEnd ? Math.min(end, next) : next)
  }
}

const bytesOf = ({ bodyBytes = 0 }: StartRequest, body: RequestContent): number =>
  body instanceof Uint8Array ? body.length : bodyBytes

const logResponseFailure = ({ id }: PooledResponse, error: unknown) =>
  logFailure('object_failed', { request_id: null, surface: 'responses', route: `ResponsePool ${id}` }, error)
