import { type CommandTable, wrongArgumentCount } from './command.ts'
import { hashCommands } from './commands-hashes.ts'
import { keyCommands } from './commands-keys.ts'
import { listCommands } from './commands-lists.ts'
import { setCommands } from './commands-sets.ts'
import { sortedSetCommands } from './commands-sorted-sets.ts'
import { stringCommands } from './commands-strings.ts'
import { Keyspace } from './keyspace.ts'
import { LuaEngine } from './lua-engine.ts'
import { parseInteger } from './numbers.ts'
import { RedisError, type Reply } from './reply.ts'

const DATA_COMMANDS: CommandTable = {
  ...stringCommands,
  ...keyCommands,
  ...hashCommands,
  ...setCommands,
  ...sortedSetCommands,
  ...listCommands,
}

/** Commands that leave every key as it is. All others count as writes, which only costs a needless save. */
const READING =
  /^(GET|MGET|H?STRLEN|GETRANGE|PING|ECHO|TIME|DBSIZE|EXISTS|TOUCH|TYPE|P?TTL|P?EXPIRETIME|KEYS|.?SCAN|HM?GET|HGETALL|HKEYS|HVALS|HLEN|HEXISTS|SMEMBERS|SCARD|SM?ISMEMBER|SRANDMEMBER|SUNION|SINTER|SDIFF|ZM?SCORE|ZCARD|ZCOUNT|Z(REV)?RANK|Z(REV)?RANGE(BYSCORE)?|ZUNION|LLEN|LRANGE|LINDEX)$/

/**
 * A small Redis in memory: strings, hashes, sets, sorted sets, lists, expiry and Lua scripts. Commands run to
 * their end one after the other, so each is atomic, a script included.
 */
export class MemoryStore {
  readonly keyspace: Keyspace
  readonly #lua: LuaEngine

  /**
   * @param clock milliseconds since 1970, for expiry and TIME
   * @param scriptLimitMs how long a script may run, in milliseconds of real time
   */
  constructor(clock: () => number = Date.now, scriptLimitMs = 5_000) {
    this.keyspace = new Keyspace(clock)
    this.#lua = new LuaEngine((name, words) => this.#runData(name, words), scriptLimitMs)
  }

  /**
   * Runs one command.
   *
   * @param words the command's name, in any case, and its arguments, as byte strings
   * @throws RedisError for everything that Redis answers with an error
   */
  run(words: string[]): Reply {
    const [name = '', ...rest] = words
    const upper = name.toUpperCase()
    if (upper !== 'EVAL' && upper !== 'EVAL_RO') return this.#runData(name, rest)
    this.check(words)
    const [source = '', count = '', ...keysAndArguments] = rest
    const keyCount = parseInteger(count)
    if (keyCount < 0) throw new RedisError("ERR Number of keys can't be negative")
    if (keyCount > keysAndArguments.length) {
      throw new RedisError("ERR Number of keys can't be greater than number of args")
    }
    return this.#lua.evaluate(source, keysAndArguments.slice(0, keyCount), keysAndArguments.slice(keyCount))
  }

  /** @throws RedisError if there is no such command or it does not take that many arguments */
  check(words: string[]): void {
    const [name = '', ...rest] = words
    const upper = name.toUpperCase()
    if (upper === 'EVAL' || upper === 'EVAL_RO') {
      if (rest.length < 2) throw wrongArgumentCount(name)
      return
    }
    const command = Object.hasOwn(DATA_COMMANDS, upper) ? DATA_COMMANDS[upper] : undefined
    if (command === undefined) {
      const shown = rest.map((word) => `'${word.slice(0, 128)}' `).join('')
      throw new RedisError(`ERR unknown command '${name.slice(0, 128)}', with args beginning with: ${shown}`)
    }
    if (rest.length < command.min || rest.length > (command.max ?? Infinity)) throw wrongArgumentCount(name)
  }

  #runData(name: string, rest: string[]): Reply {
    const upper = name.toUpperCase()
    this.check([name, ...rest])
    if (!READING.test(upper)) this.keyspace.changes++
    return DATA_COMMANDS[upper]?.run(this.keyspace, rest) ?? null
  }
}
