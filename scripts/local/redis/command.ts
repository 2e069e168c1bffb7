import type { Keyspace } from './keyspace.ts'
import { RedisError, type Reply } from './reply.ts'

/** One command: how many arguments it takes and what it does. */
export interface Command {
  /** Fewest arguments, the command's name not counted. */
  readonly min: number
  /** Most arguments; without a limit when left out. */
  readonly max?: number
  readonly run: (keyspace: Keyspace, words: string[]) => Reply
}

/** Commands by upper-case name. */
export type CommandTable = Record<string, Command>

/** A command with a fixed number of arguments. */
export function exactly(count: number, run: Command['run']): Command {
  return { min: count, max: count, run }
}

/** A command with a range of arguments. */
export function between(min: number, max: number, run: Command['run']): Command {
  return { min, max, run }
}

/** A command with any number of arguments from `min` on. */
export function atLeast(min: number, run: Command['run']): Command {
  return { min, run }
}

/** The error for a wrong number of arguments. */
export function wrongArgumentCount(name: string): RedisError {
  return new RedisError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`)
}

/** The argument at a position that the argument count has guaranteed. */
export function word(words: string[], position: number): string {
  const value = words[position]
  if (value === undefined) throw new RedisError('ERR syntax error')
  return value
}

/** Cuts `a b c d` into pairs. The caller has checked that the number is even. */
export function pairs(words: string[]): [string, string][] {
  const result: [string, string][] = []
  for (let index = 0; index < words.length; index += 2)
    result.push([word(words, index), word(words, index + 1)])
  return result
}

/** Translates a glob pattern of KEYS, SCAN and their kin: `*`, `?`, `[a-z]`, `[^a]` and backslash. */
export function globPattern(glob: string): RegExp {
  let source = ''
  for (let index = 0; index < glob.length; index++) {
    const character = glob.charAt(index)
    const close = character === '[' ? glob.indexOf(']', index + 1) : -1
    if (character === '*') source += '[\\s\\S]*'
    else if (character === '?') source += '[\\s\\S]'
    else if (character === '\\' && index + 1 < glob.length) source += escapeLiteral(glob.charAt(++index))
    else if (close > index) {
      const set = glob.slice(index + 1, close)
      const negated = set.startsWith('^')
      const body = (negated ? set.slice(1) : set).replace(/[\\\]^[]/g, '\\$&')
      source += body === '' ? (negated ? '[\\s\\S]' : '[]') : `[${negated ? '^' : ''}${body}]`
      index = close
    } else source += escapeLiteral(character)
  }
  return new RegExp(`^${source}$`)
}

function escapeLiteral(character: string): string {
  return character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** Options of the SCAN family. All matches come in one page, which the protocol allows for any COUNT. */
export function scanPage(names: string[], options: string[], expand: (name: string) => string[]): Reply {
  let pattern: RegExp | undefined
  for (let index = 0; index < options.length; index += 2) {
    const name = word(options, index).toUpperCase()
    const value = word(options, index + 1)
    if (name === 'MATCH') pattern = globPattern(value)
    else if (name !== 'COUNT' && name !== 'TYPE') throw new RedisError('ERR syntax error')
  }
  const matching = pattern === undefined ? names : names.filter((name) => pattern.test(name))
  return ['0', matching.flatMap(expand)]
}
