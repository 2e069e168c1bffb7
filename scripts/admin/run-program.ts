import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { type Call, type Command, Options, type Outcome } from './command.ts'
import { AdminError, usageError } from './errors.ts'
import { type Access, connectGateway, type Gateway } from './gateway.ts'
import { commandHelp, formatOutcome, optionsOf, outcomeJson, overallHelp } from './output.ts'
import type { Program } from './program.ts'

/** Where a run reads from and writes to. */
export interface Terminal {
  environment: NodeJS.ProcessEnv
  readInput(): Promise<string>
  print(line: string): void
  complain(line: string): void
  /** Asks a person; absent where there is none. */
  ask?(question: string, mode: 'shown' | 'hidden'): Promise<string>
  /** Shows how far long work is; absent where standard error is no terminal. */
  progress?(text: string): void
  /** Aborted by Ctrl-C. */
  interrupted?: AbortSignal
}

/**
 * Runs one command line.
 * @returns the exit code: 0 done, 1 refused or failed, 2 wrong command line, 3 broken audit chain.
 */
export async function runProgram(
  program: Program,
  words: readonly string[],
  terminal: Terminal,
): Promise<number> {
  try {
    return await runCommand(program, words, terminal)
  } catch (error) {
    if (!(error instanceof AdminError)) throw error
    terminal.complain(`${program.name}: ${error.message}`)
    if (error.hint !== undefined) terminal.complain(error.hint)
    if (error.exitCode === 2) terminal.complain('--help lists the commands and their options')
    return error.exitCode
  }
}

async function runCommand(program: Program, words: readonly string[], terminal: Terminal): Promise<number> {
  const [group, verb] = words
  if (group === undefined || group === 'help' || group.startsWith('-')) {
    const requestsHelp = group === 'help' || group === '--help' || group === '-h'
    ;(requestsHelp ? terminal.print : terminal.complain)(overallHelp(program, program.commands))
    return requestsHelp ? 0 : 2
  }
  const command = findCommand(program, group, verb, terminal)
  if (command === null) return 0
  const { values, positionals } = readWords(program, command, words.slice(command.verb === '' ? 1 : 2))
  if (values.help === true) {
    terminal.print(commandHelp(program, command))
    return 0
  }
  checkInput(command, values, positionals)
  const outcome = await command.run(callOf(program, terminal, new Options(values), positionals))
  return report(outcome, values.json === true, terminal)
}

function report(outcome: Outcome, asJson: boolean, terminal: Terminal): number {
  if (outcome.kind === 'printed') return 0
  if (asJson) terminal.print(JSON.stringify(outcomeJson(outcome), null, 2))
  else for (const line of formatOutcome(outcome)) terminal.print(line)
  if (outcome.kind === 'list' && outcome.more) terminal.complain('There are more: --limit <number> or --all.')
  return outcome.kind === 'report' ? outcome.exitCode : 0
}

function callOf(program: Program, terminal: Terminal, options: Options, positionals: string[]): Call {
  const { environment } = terminal
  let access: (Access & { organization?: string }) | undefined
  let gateway: Gateway | undefined
  const find = () => (access ??= program.findAccess(environment, options.text('profile')))
  return {
    // A command without a gateway needs none.
    get gateway() {
      gateway ??= connectGateway(find(), terminal.complain)
      return gateway
    },
    get environment() {
      const organization = environment.HEADGATE_ORGANIZATION || access?.organization
      return organization ? { ...environment, HEADGATE_ORGANIZATION: organization } : environment
    },
    positionals,
    options,
    ask:
      terminal.ask ??
      (() => {
        throw new AdminError('there is no terminal to ask at')
      }),
    readInput: terminal.readInput,
    print: terminal.print,
    note: terminal.complain,
    progress: terminal.progress ?? (() => {}),
    interrupted: terminal.interrupted ?? new AbortController().signal,
  }
}

/** @returns null when help for the group was requested and printed. */
function findCommand(
  program: Program,
  group: string,
  verb: string | undefined,
  terminal: Terminal,
): Command | null {
  const ofGroup = program.commands.filter((command) => command.group === group)
  const [first] = ofGroup
  if (first === undefined) throw usageError(`there is no command "${group}"`)
  if (first.verb === '') return first
  if (verb === '--help' || verb === '-h') {
    terminal.print(overallHelp(program, ofGroup))
    return null
  }
  const command = ofGroup.find((candidate) => candidate.verb === verb)
  if (command !== undefined) return command
  throw usageError(`${group} takes one of: ${ofGroup.map((candidate) => candidate.verb).join(', ')}`)
}

type Values = Record<string, string | boolean | string[] | undefined>

function readWords(
  program: Program,
  command: Command,
  args: string[],
): { values: Values; positionals: string[] } {
  const options: ParseArgsOptionsConfig = { help: { type: 'boolean', short: 'h' } }
  for (const [name, option] of Object.entries(optionsOf(program, command))) {
    options[name] = {
      type: option.value === undefined ? 'boolean' : 'string',
      multiple: option.multiple === true,
    }
  }
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true }) as {
      values: Values
      positionals: string[]
    }
  } catch (error) {
    throw usageError((error as Error).message.split('\n', 1)[0] ?? 'wrong options')
  }
}

function checkInput(command: Command, values: Values, positionals: readonly string[]): void {
  const name = [command.group, command.verb].filter(Boolean).join(' ')
  const missing = command.positionals[positionals.length]
  if (missing !== undefined) throw usageError(`${name} needs <${missing}>`)
  if (positionals.length > command.positionals.length) {
    throw usageError(`${name} does not take "${positionals[command.positionals.length]}"`)
  }
  for (const [option, { required }] of Object.entries(command.options)) {
    if (required && values[option] === undefined) throw usageError(`${name} needs --${option}`)
  }
}
