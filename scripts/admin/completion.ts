import type { Command, Option } from './command.ts'
import { AdminError, usageError } from './errors.ts'
import { optionsOf } from './output.ts'
import type { Program } from './program.ts'

// Scripts that complete groups, verbs, options and their values in a shell. They are static: a Tab starts no process.

export const SHELLS = ['bash', 'zsh', 'fish'] as const

/** The command that prints the script for a shell. @param program of which the commands are completed */
export const completionCommand = (program: () => Program): Command => ({
  group: 'completion',
  verb: '',
  summary: 'Print the script that completes commands in bash, zsh or fish',
  positionals: ['shell'],
  inOrganization: false,
  options: {},
  run: async ({ positionals: [shell], print, options }) => {
    if (options.flag('json')) throw usageError('a script has no form as JSON')
    const script = { bash, zsh, fish }[shell as (typeof SHELLS)[number]]
    if (script === undefined) throw new AdminError(`completion is for ${SHELLS.join(', ')}`, { exitCode: 2 })
    print(script(program()))
    return { kind: 'printed' }
  },
})

const groupsOf = ({ commands }: Program) => [...new Set(commands.map(({ group }) => group))]
const verbsOf = ({ commands }: Program, group: string) =>
  commands.filter((command) => command.group === group && command.verb !== '')
const nameOf = ({ group, verb }: Command) => (verb === '' ? group : `${group} ${verb}`)
const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`

/** Values of arguments that are words of the program itself. */
const argumentChoices = ({ group }: Command): readonly string[] => (group === 'completion' ? SHELLS : [])

function bash(program: Program): string {
  const { name, commands } = program
  const words = (command: Command) =>
    [
      ...argumentChoices(command),
      ...Object.keys(optionsOf(program, command)).map((option) => `--${option}`),
    ].join(' ')
  return `# bash completion of ${name}: source <(${name} completion bash)
_${name}() {
  local current=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]} words= command
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words=${quoted(groupsOf(program).join(' '))}
  else
    case \${COMP_WORDS[1]} in
${groupsOf(program)
  .map((group) => bashGroup(program, group))
  .join('\n')}
    esac
    if ((COMP_CWORD > 2)) || [[ $command != *' '* && -n $command ]]; then
      case "$command $previous" in
        *' --file') COMPREPLY=($(compgen -f -- "$current")); return ;;
${commands.flatMap((command) => bashChoices(program, command)).join('\n')}
        *)
          case $command in
${commands.map((command) => `            ${quoted(nameOf(command))}) words=${quoted(words(command))} ;;`).join('\n')}
          esac ;;
      esac
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _${name} ${name}`
}

function bashGroup(program: Program, group: string): string {
  const verbs = verbsOf(program, group).map(({ verb }) => verb)
  if (verbs.length === 0) return `      ${group}) command=${group} ;;`
  return `      ${group}) words=${quoted(verbs.join(' '))} command="${group} \${COMP_WORDS[2]}" ;;`
}

const withChoices = (program: Program, command: Command): Array<[string, Option]> =>
  Object.entries(optionsOf(program, command)).filter(([, { choices = [] }]) => choices.length > 0)

const bashChoices = (program: Program, command: Command): string[] =>
  withChoices(program, command).map(
    ([option, { choices = [] }]) =>
      `        ${quoted(`${nameOf(command)} --${option}`)}) words=${quoted(choices.join(' '))} ;;`,
  )

function zsh(program: Program): string {
  const { name } = program
  const groups = groupsOf(program).map((group) => {
    const verbs = verbsOf(program, group)
    return verbs.length === 0
      ? described(group, program.commands.find((command) => command.group === group)?.summary ?? '')
      : described(group, verbs.map(({ verb }) => verb).join(', '))
  })
  return `#compdef ${name}
# zsh completion of ${name}: source <(${name} completion zsh), after compinit
_${name}() {
  local -a entries
  if ((CURRENT == 2)); then
    entries=(${groups.join(' ')})
    _describe command entries
    return
  fi
  case $words[2] in
${groupsOf(program)
  .map((group) => zshGroup(program, group))
  .join('\n')}
  esac
}
compdef _${name} ${name}`
}

function zshGroup(program: Program, group: string): string {
  const verbs = verbsOf(program, group)
  const [single] = program.commands.filter((command) => command.group === group)
  if (verbs.length === 0 && single) return `    ${group}) ${zshArguments(program, single)} ;;`
  const entries = verbs.map(({ verb, summary }) => described(verb, summary))
  return `    ${group})
      if ((CURRENT == 3)); then
        entries=(${entries.join(' ')})
        _describe verb entries
        return
      fi
      case $words[3] in
${verbs.map((command) => `        ${command.verb}) ${zshArguments(program, command)} ;;`).join('\n')}
      esac ;;`
}

/** An entry of \`_describe\`: word and text with a colon between. */
const described = (word: string, text: string) => quoted(`${word}:${text.replaceAll(':', '\\:')}`)

function zshArguments(program: Program, command: Command): string {
  const choices = argumentChoices(command)
  const specifications = Object.entries(optionsOf(program, command)).map(([option, entry]) => {
    const text = entry.describe.replaceAll(/[[\]:]/g, (sign) => `\\${sign}`)
    const action = option === 'file' ? '_files' : entry.choices?.length ? `(${entry.choices.join(' ')})` : ''
    const value = entry.value === undefined ? '' : `:${entry.value.replaceAll(':', ' ')}:${action}`
    return quoted(`${entry.multiple ? '*' : ''}--${option}[${text}]${value}`)
  })
  const argument = choices.length > 0 ? ` '*: :(${choices.join(' ')})'` : ` '*: :'`
  return `_arguments ${specifications.join(' ')}${argument}`
}

function fish(program: Program): string {
  const { name, commands } = program
  const lines = [`# fish completion of ${name}: ${name} completion fish | source`, `complete -c ${name} -f`]
  const isFirst = `test (count (commandline -opc)) -eq 1`
  const isGroup = (group: string) =>
    `test (count (commandline -opc)) -eq 2; and test (commandline -opc)[2] = ${group}`
  for (const group of groupsOf(program)) lines.push(`complete -c ${name} -n ${quoted(isFirst)} -a ${group}`)
  for (const { group, verb, summary } of commands.filter((command) => command.verb !== '')) {
    lines.push(`complete -c ${name} -n ${quoted(isGroup(group))} -a ${verb} -d ${quoted(summary)}`)
  }
  for (const command of commands) lines.push(...fishOptions(program, command))
  return lines.join('\n')
}

function fishOptions(program: Program, command: Command): string[] {
  const { group, verb } = command
  const isVerb = verb === '' ? '' : `; and test (commandline -opc)[3] = ${verb}`
  const count = verb === '' ? 2 : 3
  const condition = `test (count (commandline -opc)) -ge ${count}; and test (commandline -opc)[2] = ${group}${isVerb}`
  const start = `complete -c ${program.name} -n ${quoted(condition)}`
  const choices = argumentChoices(command)
  return [
    ...(choices.length > 0 ? [`${start} -a ${quoted(choices.join(' '))}`] : []),
    ...Object.entries(optionsOf(program, command)).map(([option, entry]) => {
      const values = entry.choices?.length ? ` -a ${quoted(entry.choices.join(' '))}` : ''
      const value = entry.value === undefined ? '' : option === 'file' ? ' -r -F' : ` -x${values}`
      return `${start} -l ${option}${value} -d ${quoted(entry.describe)}`
    }),
  ]
}
