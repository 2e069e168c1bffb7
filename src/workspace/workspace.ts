import { hasTable } from '../lib/has-table.ts'
import { runSlices } from '../lib/slices.ts'
import { CallResults } from './call-results.ts'
import {
  type ExecRequest,
  type FileInfo,
  type ShellEgress,
  type Timed,
  WORKSPACE_FOLDER,
  WorkspaceError,
  type WorkspaceOperation,
  type WorkspaceOperations,
} from './contract.ts'
import { Entries } from './files/entries.ts'
import { FileError } from './files/file-error.ts'
import { FileStore } from './files/file-store.ts'
import { resolvePath } from './files/paths.ts'
import { MOST_WAITING_CALLS, RESULT_MEMORY_MS, SHELL_LIMITS, WORKSPACE_LIFETIME_MS } from './limits.ts'
import { listFiles } from './list-files.ts'
import { applyPatch, writeFile } from './patch/apply-patch.ts'
import { readLines } from './read-lines.ts'
import { searchFiles } from './search-files.ts'
import { runCommands, type ShellNetwork } from './shell/run-commands.ts'

/** State of an object in memory while it has files. */
interface Open {
  files: FileStore
  calls: CallResults
}

/** A call that runs, or waits for its turn. */
interface Pending {
  /** Undefined for one that is not of a tool. */
  callId?: string
  stop: AbortController
}

/** When the workspace deletes itself, in milliseconds since the epoch. */
const EXPIRY = 'expiry'
/** Rewriting it for each request would be a write more for each. */
const RENEWAL_STEP_MS = 3_600_000
/** Calls of one response are aborted together, by requests of their own: the next must not begin between them. */
const ABORTS_TOGETHER_MS = 100
const MOST_LISTED = 2_000

/** Operations whose results are stored, since they must not run twice. */
const WITH_EFFECTS: readonly WorkspaceOperation[] = ['exec', 'write', 'patch']

type Handlers = {
  [Name in Exclude<WorkspaceOperation, 'download' | 'abort' | 'remove'>]: (
    open: Open,
    request: WorkspaceOperations[Name]['request'],
    signal: AbortSignal,
  ) => Promise<WorkspaceOperations[Name]['result']>
}

/** The workspace of one conversation: its files, and the commands that run on them, one call at a time. */
export class Workspace {
  readonly #storage: DurableObjectStorage
  readonly #networkOf: (egress: ShellEgress) => ShellNetwork
  #open: Open | null = null
  #queue: Promise<unknown> = Promise.resolve()
  readonly #pending = new Set<Pending>()
  #removals = 0

  /** @param networkOf the network of a shell to the hosts that these rules allow. */
  constructor(storage: DurableObjectStorage, networkOf: (egress: ShellEgress) => ShellNetwork) {
    this.#storage = storage
    this.#networkOf = networkOf
  }

  /** @throws WorkspaceError */
  async run<Name extends keyof Handlers>(
    name: Name,
    request: WorkspaceOperations[Name]['request'] & Timed,
  ): Promise<WorkspaceOperations[Name]['result']> {
    const { callId } = request
    return this.#inTurn(callId, async ({ signal }) => {
      if (signal.aborted) throw new WorkspaceError('interrupted', 'The call was stopped before it began.')
      requireInTime(request)
      // A list is also read for conversations that never had a file: it stores nothing.
      if (name === 'list' && !this.#exists()) return { files: [], more: false } as never
      const open = await this.#opened()
      const removals = this.#removals
      const work = () => (this.#handlers[name] as Handlers[Name])(open, request, signal)
      try {
        if (callId === undefined) return await work()
        await this.#setAlarm(Date.now() + RESULT_MEMORY_MS)
        return await (WITH_EFFECTS.includes(name)
          ? open.calls.once(callId, work)
          : open.calls.reading(callId, work))
      } catch (error) {
        if (removals !== this.#removals)
          throw new WorkspaceError('interrupted', 'The files were deleted meanwhile.')
        throw error instanceof FileError ? workspaceErrorOf(error) : error
      }
    })
  }

  /** Stops a call, whether it runs or waits. @returns whether there was one. */
  abort(callId: string): boolean {
    const calls = [...this.#pending].filter((call) => call.callId === callId)
    for (const { stop } of calls) stop.abort()
    return calls.length > 0
  }

  /** The bytes of a file; null for a path that does not lead to one. Never creates a workspace. */
  async download(path: string): Promise<Uint8Array | null> {
    if (!this.#exists()) return null
    const { files } = await this.#opened()
    try {
      return files.read(path)
    } catch (error) {
      if (error instanceof FileError) return null
      throw error
    }
  }

  /** Deletes everything. A running call ends, and those that wait do not begin. */
  async remove(): Promise<{ removed: boolean }> {
    const removed = this.#exists()
    this.#removals++
    this.#open = null
    for (const { stop } of this.#pending) stop.abort()
    await this.#storage.deleteAlarm()
    await this.#storage.deleteAll()
    return { removed }
  }

  /** Deletes results of calls, or deletes everything when the workspace was not used for its lifetime. */
  async alarm(): Promise<void> {
    const expiry = this.#storage.kv.get<number>(EXPIRY)
    if (expiry === undefined || expiry <= Date.now()) {
      await this.remove()
      return
    }
    const { calls } = this.#tables()
    await this.#storage.setAlarm(Math.min(calls.forgetOld() ?? expiry, expiry))
  }

  readonly #handlers: Handlers = {
    exec: (open, request, signal) => this.#exec(open, request, signal),
    read: async ({ files }, { path, offset, limit }) =>
      readLines(files.read(inWorkspace(path)), offset, limit),
    write: async ({ files }, { path, content }) =>
      this.#atomically(() => {
        const target = inWorkspace(path)
        const created = writeFile(files, target, content)
        return { path: target, bytes: files.get(target).size, created }
      }),
    list: async ({ files }, { path, recursive }) => {
      const all: FileInfo[] = []
      for (const file of listFiles(files, inWorkspace(path), recursive)) {
        if (all.length === MOST_LISTED) return { files: all, more: true }
        all.push(file)
      }
      return { files: all, more: false }
    },
    search: ({ files }, request, signal) => runSlices(searchFiles(files, request, signal)),
    patch: async ({ files }, { patch }) => ({ changes: this.#atomically(() => applyPatch(files, patch)) }),
  }

  async #exec(
    { files }: Open,
    { commands, timeoutMs, outputBytes, egress }: ExecRequest,
    signal: AbortSignal,
  ) {
    const limits = {
      timeoutMs: Math.min(timeoutMs, SHELL_LIMITS.commandMs),
      outputBytes: Math.min(outputBytes, SHELL_LIMITS.outputBytes),
    }
    const network = egress.allow.length > 0 ? this.#networkOf(egress) : null
    return { output: await runCommands(files, commands, limits, network, signal) }
  }

  /** A failure rolls back the tables; the counts that are in memory are read again. */
  #atomically<Result>(work: () => Result): Result {
    try {
      return this.#storage.transactionSync(work)
    } catch (error) {
      this.#open = null
      throw error
    }
  }

  /** Runs one call at a time, so that the commands of two never mix. @throws WorkspaceError busy */
  async #inTurn<Result>(
    callId: string | undefined,
    work: (stop: AbortController) => Promise<Result>,
  ): Promise<Result> {
    if (this.#pending.size >= MOST_WAITING_CALLS)
      throw new WorkspaceError('busy', 'Too many calls wait for this workspace.')
    const call: Pending = { ...(callId !== undefined && { callId }), stop: new AbortController() }
    this.#pending.add(call)
    const turn = this.#queue.then(() => work(call.stop)).finally(() => this.#pending.delete(call))
    this.#queue = turn
      .catch(() => {})
      .then(() => (call.stop.signal.aborted ? pause(ABORTS_TOGETHER_MS) : undefined))
    return turn
  }

  async #opened(): Promise<Open> {
    await this.#renew()
    return this.#tables()
  }

  #tables(): Open {
    if (this.#open) return this.#open
    const now = () => Date.now()
    const { sql } = this.#storage
    const sync = () => this.#storage.sync()
    this.#open = { files: new FileStore(new Entries(sql, now)), calls: new CallResults(sql, sync, now) }
    return this.#open
  }

  /** Postpones the deletion. */
  async #renew(): Promise<void> {
    const expiry = Date.now() + WORKSPACE_LIFETIME_MS
    const known = this.#storage.kv.get<number>(EXPIRY)
    if (known !== undefined && known >= expiry - RENEWAL_STEP_MS) return
    this.#storage.kv.put(EXPIRY, expiry)
    await this.#setAlarm(expiry)
  }

  /** The alarm is at this time or before; it sets the next one itself. */
  async #setAlarm(time: number): Promise<void> {
    const alarm = await this.#storage.getAlarm()
    if (alarm === null || alarm > time) await this.#storage.setAlarm(time)
  }

  #exists(): boolean {
    return hasTable(this.#storage.sql, 'entries')
  }
}

const pause = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds))

const inWorkspace = (path: string): string => resolvePath(WORKSPACE_FOLDER, path)

/** @throws WorkspaceError busy if its caller does not wait any more */
function requireInTime({ startBefore = Infinity }: Timed): void {
  if (Date.now() >= startBefore)
    throw new WorkspaceError('busy', 'The call has waited too long for this workspace. Nothing was done.')
}

function workspaceErrorOf({ code, message }: FileError): WorkspaceError {
  const quota = ['EDQUOT', 'ENOSPC', 'EFBIG'].includes(code)
  return new WorkspaceError(code === 'ENOENT' ? 'not_found' : quota ? 'quota' : 'invalid', message)
}
