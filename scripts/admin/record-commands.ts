import { type Command, given, listed, listOptions, type Option, one } from './command.ts'
import { exportAudit } from './export-audit.ts'
import { organizationPath } from './ids-by-name.ts'
import { verifyAudit } from './verify-audit.ts'

// What was spent, used and recorded.

const period: Record<string, Option> = {
  from: { value: 'time', describe: 'beginning of the period, as 2026-11-21 or an ISO 8601 time' },
  to: { value: 'time', describe: 'end of the period, exclusive' },
}

const usageColumns = ['calls', 'input_tokens', 'cache_read_tokens', 'output_tokens', 'cost']

const creditCommands: Command[] = [
  {
    group: 'credits',
    verb: 'show',
    summary: 'Show the balance, in micro-credits',
    inOrganization: true,
    run: async (call) => {
      const answer = await call.gateway.request('GET', `${await organizationPath(call)}/credits?limit=1`)
      const { balance, reserved, available } = answer
      return { kind: 'item', item: { balance, reserved, available } }
    },
  },
  {
    group: 'credits',
    verb: 'list',
    summary: 'List grants and settlements',
    inOrganization: true,
    options: listOptions,
    run: async (call) =>
      listed(call, `${await organizationPath(call)}/credits`, ['at', 'kind', 'amount', 'reason', 'id']),
  },
  {
    group: 'credits',
    verb: 'grant',
    summary: 'Add micro-credits, or take them away with --amount=-N',
    inOrganization: true,
    options: {
      amount: { value: 'number', describe: 'micro-credits, a millionth of a credit', required: true },
      reason: { value: 'text', describe: 'why', required: true },
      id: { value: 'id', describe: 'a second grant under the same id changes nothing' },
    },
    run: async (call) => {
      const { options } = call
      const body = given({
        amount: options.number('amount'),
        reason: options.text('reason'),
        id: options.text('id'),
      })
      return one(call.gateway.request('POST', `${await organizationPath(call)}/credits`, body))
    },
  },
]

const usageCommands: Command[] = [
  {
    group: 'usage',
    verb: 'show',
    summary: 'Sum up usage by model, key, user or day',
    inOrganization: true,
    options: {
      ...listOptions,
      ...period,
      by: { value: 'what', describe: 'model, key, user or day (model)' },
    },
    run: async (call) => {
      const { options } = call
      const by = options.text('by') ?? 'model'
      return listed(call, `${await organizationPath(call)}/usage`, [by, ...usageColumns], {
        group_by: by,
        from: options.text('from'),
        to: options.text('to'),
      })
    },
  },
  {
    group: 'usage',
    verb: 'events',
    summary: 'List single model calls',
    inOrganization: true,
    options: { ...listOptions, ...period },
    run: async (call) => {
      const columns = [
        'at',
        'model',
        'key_id',
        'input_tokens',
        'output_tokens',
        'provenance',
        'cost',
        'call_id',
      ]
      return listed(call, `${await organizationPath(call)}/usage/events`, columns, {
        from: call.options.text('from'),
        to: call.options.text('to'),
      })
    },
  },
]

const auditCommands: Command[] = [
  {
    group: 'audit',
    verb: 'list',
    summary: 'List audit records (which is recorded itself)',
    inOrganization: true,
    options: {
      ...listOptions,
      ...period,
      deployment: { describe: 'changes to providers and models, in place of an organization' },
      user: { value: 'id', describe: 'only of this user' },
      key: { value: 'id', describe: 'only of this key' },
      model: { value: 'id', describe: 'only of this model' },
      status: { value: 'number', describe: 'only with this status' },
      surface: { value: 'name', describe: 'only of this surface, such as messages or management' },
    },
    run: async (call) => {
      const { options } = call
      const path = options.flag('deployment') ? '/audit' : `${await organizationPath(call)}/audit`
      const columns = ['at', 'surface', 'action', 'status', 'model', 'key_id', 'credits_settled', 'id']
      return listed(call, path, columns, {
        from: options.text('from'),
        to: options.text('to'),
        user_id: options.text('user'),
        key_id: options.text('key'),
        model: options.text('model'),
        status: options.text('status'),
        surface: options.text('surface'),
      })
    },
  },
  {
    group: 'audit',
    verb: 'verify',
    summary: 'Verify records, usage, credits, heads and checkpoints; exit code 3 if one is broken',
    options: {
      organization: { value: 'slug or id', describe: 'only what belongs to this organization' },
      file: { value: 'path', describe: 'an export instead of a gateway; its MACs if KEY_PEPPERS is set' },
    },
    run: verifyAudit,
  },
  {
    group: 'audit',
    verb: 'export',
    summary: 'Write records, usage, credits, heads and checkpoints as lines of JSON (which is recorded)',
    inOrganization: true,
    options: { deployment: { describe: 'changes to providers and models, in place of an organization' } },
    run: exportAudit,
  },
  {
    group: 'audit',
    verb: 'checkpoint',
    summary: 'Write down the heads of all chains under a MAC',
    run: ({ gateway }) => one(gateway.request('POST', '/audit/checkpoints')),
  },
  {
    group: 'audit',
    verb: 'flush',
    summary: 'Make the ledger of an organization write what it holds to the database now',
    inOrganization: true,
    run: async (call) => one(call.gateway.request('POST', `${await organizationPath(call)}/ledger/flush`)),
  },
]

export const recordCommands: Command[] = [...creditCommands, ...usageCommands, ...auditCommands]
