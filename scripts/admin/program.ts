import type { Command, Option } from './command.ts'
import type { Access } from './gateway.ts'

/** A program of this command line: its name, its commands and how it finds the gateway. */
export interface Program {
  /** Begins the line of an error. */
  name: string
  /** How it is called. */
  usage: string
  commands: readonly Command[]
  /** Options of every command. */
  options: Record<string, Option>
  /** Where it finds the gateway, for the help. */
  where: string
  /** @throws AdminError where there is none. @returns also the organization that is meant where none is named. */
  findAccess(environment: NodeJS.ProcessEnv, profile: string | undefined): Access & { organization?: string }
}
