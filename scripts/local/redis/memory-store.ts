import { RecordStore } from '../../node/record-store.ts'
import type { RedisBackend } from '../../node/redis/backend.ts'
import { RedisError, type Reply } from '../../node/redis/reply.ts'
import { COMMANDS, readInteger, wrongArgumentCount } from './commands.ts'
import { type KeyRecord, Keyspace } from './keyspace.ts'
import { LuaEngine } from './lua-engine.ts'

/**
 * A small Redis in memory: strings, hashes, expiry and Lua scripts. Commands run to their end one after the other, so
 * each is atomic, a script included.
 */
export class MemoryStore {
  readonly keyspace: Keyspace
  readonly #lua = new LuaEngine((words) => this.#runData(words))

  /** @param clock milliseconds since 1970, for expiry. @param records where the keys are stored */
  constructor(clock: () => number = Date.now, records = new RecordStore(undefined)) {
    this.keyspace = new Keyspace(clock, records.collection<KeyRecord>('key'))
  }

  /**
   * Runs one command.
   *
   * @param words the command's name, in any case, and its arguments, as byte strings
   * @throws RedisError for everything that Redis answers with an error
   */
  run(words: string[]): Reply {
    const [name = '', source = '', count, ...keysAndArguments] = words
    if (name.toUpperCase() !== 'EVAL') return this.#runData(words)
    if (count === undefined) throw wrongArgumentCount(name)
    const keyCount = readInteger(count)
    if (keyCount < 0) throw new RedisError("ERR Number of keys can't be negative")
    if (keyCount > keysAndArguments.length)
      throw new RedisError("ERR Number of keys can't be greater than number of args")
    return this.#lua.evaluate(source, keysAndArguments.slice(0, keyCount), keysAndArguments.slice(keyCount))
  }

  #runData([name = '', ...rest]: string[]): Reply {
    const upper = name.toUpperCase()
    const command = Object.hasOwn(COMMANDS, upper) ? COMMANDS[upper] : undefined
    if (command === undefined) {
      const shown = rest.map((word) => `'${word.slice(0, 128)}' `).join('')
      throw new RedisError(`ERR unknown command '${name.slice(0, 128)}', with args beginning with: ${shown}`)
    }
    if (rest.length < command.min || rest.length > command.max) throw wrongArgumentCount(name)
    return command.run(this.keyspace, rest)
  }
}

/**
 * Opens a store in memory.
 *
 * @param clock milliseconds since 1970
 * @param file keeps the data over a restart; without it they end with the process
 * @throws OptionError if the file is in use by another process, or damaged
 */
export function openMemoryBackend(clock: () => number, file: string | undefined): RedisBackend {
  const records = new RecordStore(file)
  const store = new MemoryStore(clock, records)
  records.open()
  return {
    run: async (words) => store.run(words),
    close: async () => records.close(),
  }
}
