import { type AgentDefinition, agentDefinition } from '../src/wire/agents.ts'

/** An agent of the demo data. */
export interface DemoAgent {
  /** Text from which the id of the agent is derived. */
  key: string
  definition: AgentDefinition
}

const TICKETS = { hosted: [], integrations: [{ integration: 'tickets' }] }
const LIST_TICKETS = `Call \`tickets_listTickets\` with this argument.
status: ["{{status}}"]

Then answer with one line for each of \`tickets\`: \`id\`, \`title\`.`
/** The scripted models judge by the texts in quotation marks. */
const LISTED = 'The answer has a line for each ticket, which begins with "- " and its number.'
const STATUS = {
  name: 'status',
  description: 'Which tickets: open, waiting or closed.',
  required: false,
  default: 'open',
}

/** Name of the agent of several steps. */
export const REPORT_AGENT = 'Ticket report'

/**
 * Two agents: one with one step, one with several steps that use an integration, files and the shell. The scripted
 * models follow their instructions as well (`local/model-upstream/answer-plan`).
 * @param model of every step.
 */
export const demoAgents = (model: string): DemoAgent[] => [
  {
    key: 'ticket-digest',
    definition: agentDefinition.parse({
      name: 'Ticket digest',
      description: 'Lists the tickets of a status in a few lines.',
      visibility: 'organization',
      inputs: [STATUS],
      steps: [
        {
          name: 'Digest',
          instructions: LIST_TICKETS,
          objective: LISTED,
          model,
          tools: TICKETS,
        },
      ],
    }),
  },
  {
    key: 'ticket-report',
    definition: agentDefinition.parse({
      name: REPORT_AGENT,
      description: 'Collects tickets, writes a report to a file of the conversation, and reads it again.',
      visibility: 'organization',
      inputs: [STATUS, { name: 'title', required: false, default: 'Tickets' }],
      steps: [
        {
          name: 'Collect',
          instructions: LIST_TICKETS,
          objective: LISTED,
          model,
          tools: TICKETS,
        },
        {
          name: 'Write',
          instructions: `Call \`write_file\` with these arguments.
path: report.md
content: # {{title}}

{{steps.1.output}}`,
          objective: 'The file "report.md" was written.',
          model,
          tools: { hosted: ['files'] },
        },
        {
          name: 'Check',
          instructions: `Call \`shell\` with these arguments.
commands: ["cat report.md"]
timeout_ms: 10000
max_output_length: null

Then answer with the report as the file has it.`,
          objective: 'The answer has the lines of the report, each of which begins with "- ".',
          model,
          tools: { hosted: ['shell'] },
        },
      ],
      limits: { timeout_seconds: 600 },
    }),
  },
]
