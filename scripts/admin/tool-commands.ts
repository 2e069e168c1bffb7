import { type Command, one } from './command.ts'
import { fileOption, membersOf } from './file-option.ts'
import { organizationPath } from './ids-by-name.ts'

// Rules of an organization for the tools that the service runs.

export const toolCommands: Command[] = [
  {
    group: 'tools',
    verb: 'show',
    summary: 'Show which tools are switched off, and which hosts tools may reach',
    inOrganization: true,
    run: async (call) => one(call.gateway.request('GET', `${await organizationPath(call)}/tools`)),
  },
  {
    group: 'tools',
    verb: 'set',
    summary: 'Replace the rules for tools; they hold from the next tool call on',
    inOrganization: true,
    options: fileOption('JSON with off, web, shell (- for standard input)', true),
    run: async (call) =>
      one(call.gateway.request('PUT', `${await organizationPath(call)}/tools`, await membersOf(call))),
  },
]
