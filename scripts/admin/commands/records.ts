import { exportAudit } from '../export-audit.ts'
import { checkLedgers, reflushAudit } from '../reflush-audit.ts'
import { type Naming, one, rowsOf } from '../table.ts'
import { tailCalls } from '../tail-calls.ts'
import { verifyAudit } from '../verify-audit.ts'

// What was spent, used and recorded.

const USAGE_COLUMNS = ['calls', 'input_tokens', 'cache_read_tokens', 'output_tokens', 'cost']

export const RECORDS: Record<string, Naming> = {
  'credits show': {
    summary: 'Show the balance, in micro-credits',
    run: async ({ gateway, path }) => {
      const request = { path: await path(), query: { limit: 1 } }
      const { balance, reserved, available } = await gateway.call('credits.show', request)
      return one({ balance, reserved, available })
    },
  },
  'credits list': {
    endpoint: 'credits.show',
    summary: 'List grants and settlements',
    columns: ['at', 'kind', 'amount', 'reason', 'id'],
  },
  'credits grant': { summary: 'Add micro-credits, or take them away with --amount=-N' },

  'usage show': {
    endpoint: 'usage.totals',
    columns: (call) => [call.options.text('by') ?? 'model', ...USAGE_COLUMNS],
  },
  'usage events': {
    columns: ['at', 'model', 'key_id', 'input_tokens', 'output_tokens', 'provenance', 'cost', 'call_id'],
  },

  'calls tail': {
    endpoint: 'audit.list',
    summary: 'Follow the calls of an organization until Ctrl-C (each look at them is recorded)',
    takes: ['user_id', 'key_id', 'model', 'status', 'surface'],
    options: {
      last: { value: 'number', describe: 'begin with so many earlier calls (10)' },
      interval: { value: 'seconds', describe: 'pause between two looks (5)' },
    },
    run: tailCalls,
  },

  'audit list': {
    deployment: 'installation-audit.list',
    asGiven: ['user_id'],
    columns: ['at', 'surface', 'action', 'status', 'model', 'key_id', 'credits_settled', 'id'],
  },
  'audit chains': {
    deployment: 'installation-audit.chains',
    options: { deployment: { describe: 'those of all organizations' } },
    shows: rowsOf('data', ['organization_id', 'shard', 'sequence', 'hash']),
  },
  'audit verify': {
    endpoint: 'installation-audit.chains',
    summary: 'Verify records, usage, credits, heads and checkpoints; exit code 3 if one is broken',
    options: {
      organization: { value: 'slug or id', describe: 'only what belongs to this organization' },
      file: { value: 'path', describe: 'an export instead of a gateway; its MACs if KEY_PEPPERS is set' },
    },
    run: verifyAudit,
  },
  'audit export': {
    endpoint: 'audit-export.heads',
    deployment: 'installation-audit-export.heads',
    summary: 'Write records, usage, credits, heads and checkpoints as lines of JSON (which is recorded)',
    run: exportAudit,
  },
  'audit checkpoint': { endpoint: 'installation-audit.checkpoint' },
  'audit check': {
    endpoint: 'installation-ledger.check',
    summary: 'Compare ledgers with the database; exit code 3 if chains or balances differ',
    takes: [],
    options: { organization: { value: 'slug or id', describe: 'only this organization' } },
    run: checkLedgers,
  },
  'audit reflush': {
    endpoint: 'installation-ledger.reflush',
    summary:
      'Write again what a restored database has lost (which is recorded); exit code 3 if records are missing',
    takes: ['from_sequence', 'shard'],
    options: {
      organization: { value: 'slug or id', describe: 'only this organization; all where left out' },
    },
    run: reflushAudit,
  },
  'audit flush': { endpoint: 'ledger.flush', deployment: 'installation-ledger.flush' },
}
