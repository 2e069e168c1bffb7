import { type GatewayClient, type Item, usageError } from './gateway-client.ts'

/** An option of a command, as `--help` shows it. */
export interface Option {
  /** What stands for its value in the help; absent for a switch. */
  value?: string
  describe: string
  required?: true
  /** May be given several times. */
  multiple?: true
}

/** One line of the help and what it does. */
export interface Command {
  group: string
  verb: string
  summary: string
  /** Names of its positional arguments, all required. */
  positionals?: readonly string[]
  /** Whether it works within an organization: `--organization`, or HEADGATE_ORGANIZATION. */
  inOrganization?: true
  options?: Record<string, Option>
  run(call: Call): Promise<Outcome>
}

/** A command's input and the gateway it works on. */
export interface Call {
  gateway: GatewayClient
  positionals: readonly string[]
  options: Options
  environment: NodeJS.ProcessEnv
  /** Everything on standard input, for secrets. */
  readInput(): Promise<string>
  /** A line of the result, for results that are too long to be returned. */
  print(line: string): void
  /** A line on standard error that is no result. */
  note(line: string): void
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

  /** A number, or null for `none`. @throws AdminError for anything else. */
  limit(name: string): number | null | undefined {
    return this.text(name) === 'none' ? null : this.number(name)
  }
}

/** Drops the members that were not given, so that an update leaves them alone. */
export function given(members: Item): Item {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined))
}

/** How much of a list is shown. */
export const listOptions: Record<string, Option> = {
  limit: { value: 'number', describe: 'show at most so many (100)' },
  all: { describe: 'show all' },
}

/** Reads a list as far as its options request. */
export async function listed(
  call: Call,
  path: string,
  columns: readonly string[],
  query: Record<string, string | undefined> = {},
): Promise<Outcome> {
  const most = call.options.flag('all') ? Number.MAX_SAFE_INTEGER : (call.options.number('limit') ?? 100)
  if (most < 1) throw usageError('--limit takes a number from 1')
  const { items, more } = await call.gateway.list(path, query, most)
  return { kind: 'list', items, columns, more }
}

export const one = async (item: Promise<Item>): Promise<Outcome> => ({ kind: 'item', item: await item })
