import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate, useParams } from '@tanstack/react-router'
import { call } from '../../data/client.ts'
import { type Me, may, useSignedIn } from '../../data/me.ts'
import { useShortcut } from '../../data/shortcut.ts'
import { Failure, Notice, Waiting } from '../../design/notice.tsx'
import { Page } from '../../design/page.tsx'
import styles from './policies.module.css'
import { type Policy, readDraft, STARTERS } from './policy-draft.ts'
import { PolicyEditor } from './policy-editor.tsx'
import { TEXT } from './text.ts'

/** Ids of policies that do not exist yet, by the starter that they begin with. */
const NEW = 'new-'
type StarterName = keyof typeof STARTERS

/** What may not leave and what may not come in: each policy with its rules beside a sample of what it does. */
export function PoliciesPage() {
  const me = useSignedIn()
  const navigate = useNavigate()
  const { slug, id: organizationId } = me.organization
  const { policyId } = useParams({ strict: false })
  const policies = useQuery({
    queryKey: ['policies', organizationId],
    queryFn: () => call('policies.list', { path: { organizationId }, query: { limit: 200 } }),
  })
  const canChange = may(me, 'policies.change')
  const make = () => navigate({ to: '/$slug/policies/$policyId', params: { slug, policyId: `${NEW}cards` } })
  useShortcut('n', make, canChange)
  const { data, error } = policies
  const failure = error && (
    <Failure error={error} retry={() => policies.refetch()} shownSince={policies.dataUpdatedAt} />
  )
  const starter = starterOf(policyId)
  const chosen =
    data?.data.find(({ id }) => id === policyId) ?? (policyId === undefined ? data?.data[0] : undefined)
  return (
    <Page title={TEXT.title}>
      {failure}
      {!data && !failure && <Waiting />}
      {data && starter === null && chosen === undefined && <NoPolicy slug={slug} canChange={canChange} />}
      {data && (starter !== null || chosen !== undefined) && (
        <PolicyEditor
          key={starter ?? chosen?.id}
          me={me}
          policy={chosen ?? null}
          starter={STARTERS[starter ?? 'cards']}
          canChange={canChange}
          list={<PolicyList me={me} policies={data.data} chosenId={chosen?.id} canChange={canChange} />}
        />
      )}
    </Page>
  )
}

const starterOf = (policyId: string | undefined): StarterName | null => {
  const name = policyId?.startsWith(NEW) ? policyId.slice(NEW.length) : null
  return name !== null && name in STARTERS ? (name as StarterName) : null
}

type ListProps = { me: Me; policies: readonly Policy[]; chosenId: string | undefined; canChange: boolean }

function PolicyList({ me, policies, chosenId, canChange }: ListProps) {
  const { slug, id: organizationId } = me.organization
  return (
    <nav className={styles.items} aria-label={TEXT.title}>
      <p>
        {TEXT.count(policies.length)}
        {canChange && (
          <Link to="/$slug/policies/$policyId" params={{ slug, policyId: `${NEW}cards` }}>
            {TEXT.newPolicy}
          </Link>
        )}
      </p>
      {policies.map((policy) => (
        <Link
          key={policy.id}
          to="/$slug/policies/$policyId"
          params={{ slug, policyId: policy.id }}
          className={styles.item}
          aria-current={policy.id === chosenId ? 'true' : undefined}
        >
          <span data-off={policy.enabled ? undefined : ''}>
            {policy.name}
            <small>
              v{policy.version}
              {readDraft(organizationId, policy.id) && ' draft'}
            </small>
          </span>
          <small>{policy.enabled ? directionsText(policy) : TEXT.off}</small>
        </Link>
      ))}
    </nav>
  )
}

const directionsText = ({ directions }: Policy): string =>
  directions.length === Object.keys(TEXT.direction).length
    ? TEXT.everything
    : directions.map((direction) => TEXT.direction[direction]).join(', ')

function NoPolicy({ slug, canChange }: { slug: string; canChange: boolean }) {
  return (
    <Notice title={TEXT.empty}>
      {canChange && (
        <>
          <p>{TEXT.startWith}</p>
          <ul className={styles.starters}>
            {(Object.keys(STARTERS) as StarterName[]).map((name) => (
              <li key={name}>
                <Link to="/$slug/policies/$policyId" params={{ slug, policyId: NEW + name }}>
                  {TEXT.starters[name][0]}
                </Link>{' '}
                {TEXT.starters[name][1]}
              </li>
            ))}
          </ul>
        </>
      )}
    </Notice>
  )
}
