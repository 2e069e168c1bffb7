import { SnapshotFile } from '../snapshot-file.ts'
import { OptionError } from '../stand-in-process.ts'
import type { RedisBackend } from './backend.ts'
import type { SnapshotEntry } from './keyspace.ts'
import { MemoryStore } from './memory-store.ts'
import { RedisError, type Reply } from './reply.ts'

/** What the file holds. */
interface SavedStore {
  readonly version: 1
  readonly entries: SnapshotEntry[]
}

/**
 * Opens the store in memory.
 *
 * @param clock milliseconds since 1970
 * @param file keeps the data over a restart; without it they end with the process
 * @throws OptionError if the file is in use by another process, or damaged
 */
export function openMemoryBackend(clock: () => number, file: string | undefined): RedisBackend {
  const store = new MemoryStore(clock)
  const snapshot = file === undefined ? undefined : new SnapshotFile<SavedStore>(file)
  if (snapshot !== undefined) restore(store, snapshot, file)
  return {
    run: async (words) => store.run(words),
    async transaction(commands) {
      for (const words of commands) checkQueued(store, words)
      return commands.map((words) => attempt(store, words))
    },
    async close() {
      snapshot?.close()
    },
  }
}

function restore(store: MemoryStore, snapshot: SnapshotFile<SavedStore>, file: string | undefined): void {
  try {
    const saved = snapshot.load()
    if (saved !== undefined && saved.version !== 1) throw new OptionError(`${file} is of another version`)
    store.keyspace.restore(saved?.entries ?? [])
  } catch (error) {
    snapshot.close()
    throw error
  }
  const { keyspace } = store
  snapshot.start({
    take: () => ({ version: 1, entries: keyspace.snapshot() }),
    changes: () => keyspace.changes,
  })
}

/** Redis refuses a command that it does not know when it is queued, and then the whole transaction. */
function checkQueued(store: MemoryStore, words: string[]): void {
  try {
    store.check(words)
  } catch (error) {
    throw new RedisError(
      `EXECABORT Transaction discarded because of previous errors. ${(error as Error).message}`,
    )
  }
}

function attempt(store: MemoryStore, words: string[]): Reply | RedisError {
  try {
    return store.run(words)
  } catch (error) {
    if (error instanceof RedisError) return error
    throw error
  }
}
