import { usageError } from './errors.ts'
import type { Gateway, Item } from './gateway.ts'

/** An option of a command, as `--help` shows it. */
export interface Option {
  /** What stands for its value in the help; absent for a switch. */
  value?: string
  describe: string
  required?: boolean
  /** May be given several times. */
  multiple?: boolean
  /** The values that it takes, for completion. */
  choices?: readonly string[]
}

/** One line of the help and what it does. */
export interface Command {
  group: string
  /** Empty for a command of one word. */
  verb: string
  summary: string
  /** Names of its positional arguments, all required. */
  positionals: readonly string[]
  /** Whether it works within an organization: `--organization`, or HEADGATE_ORGANIZATION. */
  inOrganization: boolean
  options: Record<string, Option>
  run(call: Call): Promise<Outcome>
}

/** A command's input and the gateway it works on. */
export interface Call {
  gateway: Gateway
  positionals: readonly string[]
  options: Options
  environment: NodeJS.ProcessEnv
  /** Asks the person at the terminal; throws where there is none. */
  ask(question: string, mode: 'shown' | 'hidden'): Promise<string>
  /** Everything on standard input, for secrets. */
  readInput(): Promise<string>
  /** A line of the result, for results that are too long to be returned. */
  print(line: string): void
  /** A line on standard error that is no result. */
  note(line: string): void
  /** How far long work is, in place of what was shown before; nothing where standard error is no terminal. */
  progress(text: string): void
  /** Aborted by Ctrl-C, for commands that run until then. */
  interrupted: AbortSignal
}

/** The result of a command: a list, printed as a table of these columns, or one object. */
export type Outcome =
  | { kind: 'list'; items: Item[]; columns: readonly string[]; more: boolean }
  | { kind: 'item'; item: Item }
  /** Printed as its own lines; `item` for `--json`. */
  | { kind: 'report'; lines: string[]; item: unknown; exitCode: number }
  /** All of it was printed by the command. */
  | { kind: 'printed' }

/** Option values by name, read as what they have to be. */
export class Options {
  readonly #values: Record<string, string | boolean | string[] | undefined>

  constructor(values: Record<string, string | boolean | string[] | undefined>) {
    this.#values = values
  }

  text(name: string): string | undefined {
    const value = this.#values[name]
    return typeof value === 'string' ? value : undefined
  }

  texts(name: string): string[] | undefined {
    const value = this.#values[name]
    return Array.isArray(value) ? value : undefined
  }

  flag(name: string): boolean {
    return this.#values[name] === true
  }

  /** @throws AdminError for anything but a whole number. */
  number(name: string): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    if (!/^-?\d{1,16}$/.test(text)) throw usageError(`--${name} takes a whole number, not "${text}"`)
    return Number(text)
  }
}

/** Drops the members that were not given, so that an update leaves them alone. */
export function given(members: Item): Item {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}
