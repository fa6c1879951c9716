from axolotl_testing import Policy


def test_policy(axolotl_policy: Policy) -> None:
    axolotl_policy.expect(sees=set(), calls=set())
    axolotl_policy.expect(roles=["clerk"], sees={"track"}, calls={"track"})
    axolotl_policy.expect(roles=["driver"], sees={"track", "deliver"}, calls={"track", "deliver"})
