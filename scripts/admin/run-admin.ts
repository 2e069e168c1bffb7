import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { accessCommands } from './access-commands.ts'
import { agentCommands } from './agent-commands.ts'
import { type Command, Options } from './command.ts'
import { connectionsAndVault } from './connection-commands.ts'
import { dlpCommands } from './dlp-commands.ts'
import { AdminError, type GatewayClient, gatewayClient, usageError } from './gateway-client.ts'
import { integrationCommands } from './integration-commands.ts'
import { catalogueCommands } from './model-commands.ts'
import { commandHelp, formatOutcome, outcomeJson, overallHelp } from './output.ts'
import { peopleCommands } from './people-commands.ts'
import { recordCommands } from './record-commands.ts'
import { toolCommands } from './tool-commands.ts'

const commands: readonly Command[] = [
  ...peopleCommands,
  ...accessCommands,
  ...dlpCommands,
  ...toolCommands,
  ...integrationCommands,
  ...connectionsAndVault,
  ...agentCommands,
  ...recordCommands,
  ...catalogueCommands,
]

/** Where a run reads from and writes to. */
export interface Terminal {
  environment: NodeJS.ProcessEnv
  readInput(): Promise<string>
  print(line: string): void
  complain(line: string): void
}

/**
 * Runs one command line.
 * @returns the exit code: 0 done, 1 refused or failed, 2 wrong command line, 3 broken audit chain.
 */
export async function runAdmin(words: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await runCommand(words, terminal)
  } catch (error) {
    if (!(error instanceof AdminError)) throw error
    terminal.complain(`admin: ${error.message}`)
    if (error.exitCode === 2) terminal.complain('--help lists the commands and their options')
    return error.exitCode
  }
}

async function runCommand(words: readonly string[], terminal: Terminal): Promise<number> {
  const [group, verb, ...rest] = words
  if (group === undefined || group === 'help' || group.startsWith('-')) {
    const requestsHelp = group === 'help' || group === '--help' || group === '-h'
    ;(requestsHelp ? terminal.print : terminal.complain)(overallHelp(commands))
    return requestsHelp ? 0 : 2
  }
  const command = findCommand(group, verb, terminal)
  if (command === null) return 0
  const { values, positionals } = readWords(command, rest)
  if (values.help === true) {
    terminal.print(commandHelp(command))
    return 0
  }
  checkInput(command, values, positionals)
  let gateway: GatewayClient | undefined
  const outcome = await command.run({
    // A command without a gateway needs none.
    get gateway() {
      gateway ??= gatewayClient(terminal.environment, terminal.complain)
      return gateway
    },
    positionals,
    options: new Options(values),
    environment: terminal.environment,
    readInput: terminal.readInput,
    print: terminal.print,
    note: terminal.complain,
  })
  if (outcome.kind === 'printed') return 0
  if (values.json === true) terminal.print(JSON.stringify(outcomeJson(outcome), null, 2))
  else for (const line of formatOutcome(outcome)) terminal.print(line)
  if (outcome.kind === 'list' && outcome.more) terminal.complain('There are more: --limit <number> or --all.')
  return outcome.kind === 'report' ? outcome.exitCode : 0
}

/** @returns null when help for the group was requested and printed. */
function findCommand(group: string, verb: string | undefined, terminal: Terminal): Command | null {
  const ofGroup = commands.filter((command) => command.group === group)
  if (ofGroup.length === 0) throw usageError(`there is no command "${group}"`)
  if (verb === '--help' || verb === '-h') {
    terminal.print(overallHelp(ofGroup))
    return null
  }
  const command = ofGroup.find((candidate) => candidate.verb === verb)
  if (command !== undefined) return command
  throw usageError(`${group} takes one of: ${ofGroup.map((candidate) => candidate.verb).join(', ')}`)
}

type Values = Record<string, string | boolean | string[] | undefined>

function readWords(command: Command, words: string[]): { values: Values; positionals: string[] } {
  const options: ParseArgsOptionsConfig = {
    json: { type: 'boolean' },
    help: { type: 'boolean', short: 'h' },
    ...(command.inOrganization && { organization: { type: 'string' } }),
  }
  for (const [name, option] of Object.entries(command.options ?? {})) {
    options[name] = {
      type: option.value === undefined ? 'boolean' : 'string',
      multiple: option.multiple === true,
    }
  }
  try {
    return parseArgs({ args: words, options, allowPositionals: true, strict: true }) as {
      values: Values
      positionals: string[]
    }
  } catch (error) {
    throw usageError((error as Error).message.split('\n', 1)[0] ?? 'wrong options')
  }
}

function checkInput(command: Command, values: Values, positionals: readonly string[]): void {
  const names = command.positionals ?? []
  const missing = names[positionals.length]
  if (missing !== undefined) throw usageError(`${command.group} ${command.verb} needs <${missing}>`)
  if (positionals.length > names.length) {
    throw usageError(`${command.group} ${command.verb} does not take "${positionals[names.length]}"`)
  }
  for (const [name, option] of Object.entries(command.options ?? {})) {
    if (option.required && values[name] === undefined) {
      throw usageError(`${command.group} ${command.verb} needs --${name}`)
    }
  }
}
